// The views of one batch, in the two rows that cross the bridge. The rows are kept from batch to batch; no key is
// copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "bridge.rs.h"
#include "flow/flow.h"
#include "fdbclient/CommitTransaction.h"

namespace resolver_bridge {

// A row that grows and keeps its memory. Its elements are plain data, written by whoever asked for room.
template <class T>
class Row {
	static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
	T* first = nullptr;
	// Behind the last element, and behind the last that there is room for.
	T* next = nullptr;
	T* stop = nullptr;

public:
	Row() = default;
	Row(const Row&) = delete;
	Row& operator=(const Row&) = delete;
	~Row() { ::operator delete(first); }

	size_t size() const { return next - first; }
	void clear() { next = first; }
	rust::Slice<const T> slice() const { return next != first ? rust::Slice<const T>(first, size()) : rust::Slice<const T>(); }
	bool fits(size_t count) const { return static_cast<size_t>(stop - next) >= count; }

	// The next elements, for which there is room; the caller writes them.
	T* take(size_t count) {
		T* taken = next;
		next += count;
		return taken;
	}

	// Makes room for that many more elements.
	void reserve(size_t count) {
		if (fits(count)) {
			return;
		}
		const size_t used = size();
		const size_t larger = std::max<size_t>({ used + count, 2 * static_cast<size_t>(stop - first), 1024 });
		T* row = static_cast<T*>(::operator new(larger * sizeof(T)));
		if (used) {
			memcpy(static_cast<void*>(row), first, used * sizeof(T));
		}
		::operator delete(first);
		first = row;
		next = row + used;
		stop = row + larger;
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

	static RangeView* add(RangeView* to, const VectorRef<KeyRangeRef>& ranges, size_t count) {
		const KeyRangeRef* range = ranges.begin();
		for (const RangeView* stop = to + count; to != stop; ++range, ++to) {
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
	size_t size() const { return rowOfTransactions.size(); }
	BatchView view(int64_t version, int64_t oldest) const {
		return { version, oldest, rowOfTransactions.slice(), rowOfRanges.slice() };
	}

	// Whether there is room for a transaction of that many ranges; `reserve` makes it.
	bool fits(size_t ranges) const { return rowOfTransactions.fits(1) && rowOfRanges.fits(ranges); }
	void reserve(size_t ranges) {
		rowOfTransactions.reserve(1);
		rowOfRanges.reserve(ranges);
	}

	// Adds a transaction that fits, with the first `reads` of its read ranges and the first `writes` of its write
	// ranges.
	void add(const CommitTransactionRef& transaction, int64_t readVersion, bool report, size_t reads, size_t writes) {
		TransactionView* view = rowOfTransactions.take(1);
		view->read_version = readVersion;
		view->report = report;
		view->first = static_cast<uint32_t>(rowOfRanges.size());
		view->reads = static_cast<uint32_t>(reads);
		view->writes = static_cast<uint32_t>(writes);
		RangeView* room = rowOfRanges.take(reads + writes);
		room = add(room, transaction.read_conflict_ranges, reads);
		add(room, transaction.write_conflict_ranges, writes);
	}
};

} // namespace resolver_bridge
