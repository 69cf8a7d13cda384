// The views of one batch, in the two rows that cross the bridge. The rows are kept from batch to batch; no key is copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "bridge.rs.h"
#include "flow/flow.h"
#include "fdbclient/CommitTransaction.h"

namespace resolver_bridge {

// A row that grows and keeps its memory. Its elements are plain data, written by whoever asked for room.
template <class T>
class Row {
	static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
	struct Free {
		void operator()(T* row) const { ::operator delete(row); }
	};
	std::unique_ptr<T, Free> elements;
	size_t used = 0;
	size_t capacity = 0;

public:
	size_t size() const { return used; }
	void clear() { used = 0; }
	rust::Slice<const T> slice() const { return used ? rust::Slice<const T>(elements.get(), used) : rust::Slice<const T>(); }

	// Room for that many more elements, all of which the caller writes.
	T* grow(size_t count) {
		if (used + count > capacity) {
			enlarge(used + count);
		}
		T* room = elements.get() + used;
		used += count;
		return room;
	}

private:
	void enlarge(size_t least) {
		const size_t larger = std::max<size_t>({ least, capacity * 2, 1024 });
		std::unique_ptr<T, Free> row(static_cast<T*>(::operator new(larger * sizeof(T))));
		if (used) {
			memcpy(static_cast<void*>(row.get()), elements.get(), used * sizeof(T));
		}
		elements = std::move(row);
		capacity = larger;
	}
};

class BatchViews {
	Row<TransactionView> rowOfTransactions;
	Row<RangeView> rowOfRanges;

	// An empty key may come without an address, which no view may.
	static const uint8_t* address(const StringRef& key) {
		static constexpr uint8_t kSomewhere = 0;
		const uint8_t* begin = key.begin();
		return begin ? begin : &kSomewhere;
	}

	static RangeView* add(RangeView* to, const VectorRef<KeyRangeRef>& ranges, int count) {
		const KeyRangeRef* range = ranges.begin();
		for (const KeyRangeRef* stop = range + count; range != stop; ++range, ++to) {
			to->begin = address(range->begin);
			to->begin_length = static_cast<size_t>(range->begin.size());
			to->end = address(range->end);
			to->end_length = static_cast<size_t>(range->end.size());
		}
		return to;
	}

public:
	void clear() {
		rowOfTransactions.clear();
		rowOfRanges.clear();
	}
	rust::Slice<const TransactionView> transactions() const { return rowOfTransactions.slice(); }
	rust::Slice<const RangeView> ranges() const { return rowOfRanges.slice(); }

	// Adds a transaction, with the first `reads` of its read ranges and the first `writes` of its write ranges.
	void add(const CommitTransactionRef& transaction, int64_t readVersion, bool report, int reads, int writes) {
		const size_t first = rowOfRanges.size();
		TransactionView* view = rowOfTransactions.grow(1);
		view->read_version = readVersion;
		view->report = report;
		view->first = static_cast<uint32_t>(first);
		view->reads = static_cast<uint32_t>(reads);
		view->writes = static_cast<uint32_t>(writes);
		RangeView* room = rowOfRanges.grow(static_cast<size_t>(reads) + static_cast<size_t>(writes));
		room = add(room, transaction.read_conflict_ranges, reads);
		add(room, transaction.write_conflict_ranges, writes);
	}
};

} // namespace resolver_bridge
