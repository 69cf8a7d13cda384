#include "set.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "adapter.h"
#include "fdbserver/ConflictSet.h"
#include "flow/flow.h"
#include "resolver-fuzz/src/bridge.rs.h"

namespace resolver_fuzz {

namespace rb = resolver_bridge;

Set::Set(bool shadow) : set(rb::newHistory(shadow ? rb::Choice::Shadow : rb::Choice::Tree)) {}

Set::~Set() {
	destroyConflictSet(set);
}

void Set::clear(int64_t version) {
	clearConflictSet(set, version);
}

Decisions Set::decide(int64_t version,
                      int64_t oldest,
                      rust::Slice<const TransactionData> transactions,
                      rust::Slice<const uint8_t> keys,
                      rust::Slice<const uint32_t> lengths) {
	Arena arena, replyArena;
	const uint8_t* nextKey = keys.data();
	const uint32_t* nextLength = lengths.data();
	// Every key in memory of its own, so that a byte read past its end is seen.
	const auto key = [&] {
		const uint32_t length = *nextLength++;
		if (!length) {
			return StringRef();
		}
		uint8_t* bytes = new (arena) uint8_t[length];
		memcpy(bytes, nextKey, length);
		nextKey += length;
		return StringRef(bytes, static_cast<int>(length));
	};
	std::vector<CommitTransactionRef> input(transactions.size());
	for (size_t t = 0; t < transactions.size(); t++) {
		input[t].read_snapshot = transactions[t].read_version;
		input[t].report_conflicting_keys = transactions[t].report;
		const auto fill = [&](VectorRef<KeyRangeRef>& ranges, uint32_t count) {
			for (; count > 0; count--) {
				const StringRef begin = key();
				ranges.push_back(arena, KeyRangeRef(begin, key()));
			}
		};
		fill(input[t].read_conflict_ranges, transactions[t].reads);
		fill(input[t].write_conflict_ranges, transactions[t].writes);
	}
	std::map<int, VectorRef<int>> reports;
	std::vector<int> committed, tooOld;
	TraceEvent::all().clear();
	{
		ConflictBatch batch(set, &reports, &replyArena);
		for (const CommitTransactionRef& transaction : input) {
			batch.addTransaction(transaction, oldest);
		}
		batch.detectConflicts(version, oldest, committed, &tooOld);
	}
	Decisions decisions{};
	std::vector<uint8_t> verdicts(transactions.size(), 0);
	for (int t : committed) {
		verdicts.at(t) = 3;
	}
	for (int t : tooOld) {
		verdicts.at(t) = 1;
	}
	std::copy(verdicts.begin(), verdicts.end(), std::back_inserter(decisions.verdicts));
	for (const auto& [t, reads] : reports) {
		for (int read : reads) {
			decisions.reported.push_back({ static_cast<uint32_t>(t), static_cast<uint32_t>(read) });
		}
	}
	for (const TraceEvent::Event& event : TraceEvent::all()) {
		if (event.severity == SevError && decisions.error.empty()) {
			std::string text = event.type;
			for (const auto& [name, value] : event.details) {
				text += " " + name + "=" + value;
			}
			decisions.error = rust::String::lossy(text);
		}
	}
	return decisions;
}

std::unique_ptr<Set> new_set(bool shadow) {
	return std::make_unique<Set>(shadow);
}

} // namespace resolver_fuzz
