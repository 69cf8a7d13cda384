// In place of FoundationDB's skip list: the plainest conflict set that decides like it, compiled under the original's
// new names.
#include "fdbserver/ConflictSet.h"

#include <algorithm>
#include <string>

// Switched on, the next transaction that would commit is in conflict instead.
bool standinPlantsDifference = false;

namespace {

std::string bytes(const StringRef& key) {
	return key.size() ? std::string(reinterpret_cast<const char*>(key.begin()), key.size()) : std::string();
}

// A version for every key: that of the greatest key at or below it.
class Pieces {
	std::map<std::string, Version> pieces;

public:
	explicit Pieces(Version base) { pieces[""] = base; }
	Version newest(const KeyRangeRef& range) const {
		const std::string begin = bytes(range.begin), end = bytes(range.end);
		Version newest = -1;
		if (begin < end) {
			for (auto piece = std::prev(pieces.upper_bound(begin)); piece != pieces.end() && piece->first < end; ++piece) {
				newest = std::max(newest, piece->second);
			}
		}
		return newest;
	}
	void write(const KeyRangeRef& range, Version version) {
		const std::string begin = bytes(range.begin), end = bytes(range.end);
		if (begin < end) {
			const Version after = std::prev(pieces.upper_bound(end))->second;
			pieces.erase(pieces.lower_bound(begin), pieces.lower_bound(end));
			pieces[begin] = version;
			pieces[end] = after;
		}
	}
};

} // namespace

struct TransactionInfo {
	CommitTransactionRef transaction;
	bool tooOld, reads, writes;
};
struct KeyInfo {};
struct ReadConflictRange {};

struct ConflictSet {
	Pieces pieces{ 0 };
};

ConflictSet* newConflictSet() {
	return new ConflictSet;
}
void clearConflictSet(ConflictSet* cs, Version v) {
	cs->pieces = Pieces(v);
}
void destroyConflictSet(ConflictSet* cs) {
	delete cs;
}

ConflictBatch::ConflictBatch(ConflictSet* cs, std::map<int, VectorRef<int>>* reports, Arena* arena)
  : cs(cs), transactionCount(0), conflictingKeyRangeMap(reports), resolveBatchReplyArena(arena) {}
ConflictBatch::~ConflictBatch() = default;

bool ConflictBatch::ignoreTooOld() const {
	return bugs && deterministicRandom()->random01() < bugs->ignoreTooOldProbability;
}
bool ConflictBatch::ignoreReadSet() const {
	return bugs && deterministicRandom()->random01() < bugs->ignoreReadSetProbability;
}
bool ConflictBatch::ignoreWriteSet() const {
	return bugs && deterministicRandom()->random01() < bugs->ignoreWriteSetProbability;
}

void ConflictBatch::addTransaction(const CommitTransactionRef& tr, Version oldest) {
	TransactionInfo info{ tr, tr.read_snapshot < oldest && !tr.read_conflict_ranges.empty(), true, true };
	const auto hit = [&](bool planted) {
		if (planted) {
			bugs->hit();
		}
		return planted;
	};
	info.tooOld = info.tooOld && !hit(ignoreTooOld());
	if (!info.tooOld) {
		info.reads = !hit(ignoreReadSet());
		info.writes = !hit(ignoreWriteSet());
		if (tr.report_conflicting_keys && info.reads && !tr.read_conflict_ranges.empty()) {
			(*conflictingKeyRangeMap)[transactionCount];
		}
	}
	transactionCount++;
	transactionInfo.push_back(info);
}

void ConflictBatch::detectConflicts(Version now,
                                    Version,
                                    std::vector<int>& nonConflicting,
                                    std::vector<int>* tooOldTransactions) {
	Pieces written(0);
	std::vector<const TransactionInfo*> committed;
	for (int t = 0; t < static_cast<int>(transactionInfo.size()); t++) {
		const TransactionInfo& info = transactionInfo[t];
		if (info.tooOld) {
			if (tooOldTransactions) {
				tooOldTransactions->push_back(t);
			}
			continue;
		}
		std::vector<int> reads;
		for (int r = 0; info.reads && r < info.transaction.read_conflict_ranges.size(); r++) {
			if (cs->pieces.newest(info.transaction.read_conflict_ranges.begin()[r]) > info.transaction.read_snapshot) {
				reads.push_back(r);
			}
		}
		for (int r = 0; info.reads && reads.empty() && r < info.transaction.read_conflict_ranges.size(); r++) {
			if (written.newest(info.transaction.read_conflict_ranges.begin()[r]) > 0) {
				reads.push_back(r);
			}
		}
		if (info.transaction.report_conflicting_keys) {
			// In the order in which they are found, twice, as the original may.
			for (int twice = 0; twice < 2; twice++) {
				for (auto r = reads.rbegin(); r != reads.rend(); ++r) {
					(*conflictingKeyRangeMap)[t].push_back(*resolveBatchReplyArena, *r);
				}
			}
		}
		if (reads.empty() && standinPlantsDifference) {
			standinPlantsDifference = false;
		} else if (reads.empty()) {
			nonConflicting.push_back(t);
			committed.push_back(&info);
			if (info.writes) {
				for (const KeyRangeRef& range : info.transaction.write_conflict_ranges) {
					written.write(range, 1);
				}
			}
		}
	}
	for (const TransactionInfo* info : committed) {
		if (info->writes) {
			for (const KeyRangeRef& range : info->transaction.write_conflict_ranges) {
				cs->pieces.write(range, now);
			}
		}
	}
}

void ConflictBatch::GetTooOldTransactions(std::vector<int>& transactions) {
	for (size_t t = 0; t < transactionInfo.size(); t++) {
		if (transactionInfo[t].tooOld) {
			transactions.push_back(static_cast<int>(t));
		}
	}
}

void skipListTest() {
	printf("the original's own test\n");
}
