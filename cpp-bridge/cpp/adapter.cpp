// FoundationDB's ConflictSet surface over three histories: the tree, the original skip list, or both (shadow mode).
//
// The class ConflictBatch is declared in FoundationDB's header, and used as it is: its members `cs`,
// `transactionCount`, `bugs` and those of the report are in use here; the arrays of the original's algorithm stay
// empty, but their element types must be complete.

#include "adapter.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conflict_set_header.h"
#include "flow/flow.h"
#include "layout.h"
#include "original.h"
#include "views.h"

struct TransactionInfo {};
struct KeyInfo {};
struct ReadConflictRange {};

namespace rb = resolver_bridge;

namespace {

// How often a resolver traces the tree's figures, at most: seconds.
constexpr double kTraceInterval = 5.0;

// The numbers of verdicts on the bridge.
constexpr uint8_t kConflict = 0;
constexpr uint8_t kTooOld = 1;
constexpr uint8_t kCommitted = 3;

std::string toString(rust::Str text) {
	return std::string(text.data(), text.size());
}

} // namespace

// One resolver's history, and the arrays of its batch: a resolver has one alive at a time.
struct ConflictSet {
	const rb::Choice choice;
	// The original, where it answers: `skiplist` and `shadow`.
	rb::original::Set* original = nullptr;
	rb::original::Batch* originalBatch = nullptr;
	// The tree, where it takes part: `tree` and `shadow`. In `shadow`, not any more once it has failed.
	std::optional<rust::Box<rb::TreeHistory>> tree;
	// The original takes no part.
	const bool treeIsAlone;
	// The batch that transactions are added to. A resolver keeps a batch after it was decided, and may begin the next
	// before it drops that one.
	const ConflictBatch* openBatch = nullptr;
	rb::BatchViews views;
	// Room for the places of all transactions of a batch.
	rb::Row<int> places;
	// The batch's transactions that are too old.
	std::vector<int> tooOld;
	// For `shadow`: what the original decided.
	std::vector<int> nonConflicting;
	std::vector<uint8_t> verdicts;
	std::vector<rb::ReportedRead> reported;
	double nextTrace = 0;

	explicit ConflictSet(rb::Choice choice) : choice(choice), treeIsAlone(choice == rb::Choice::Tree) {
		if (choice != rb::Choice::SkipList) {
			tree.emplace(rb::make_tree(rb::kLayout, rb::settings()));
			if (!(*tree)->message().empty()) {
				failed();
			}
		}
		if (!treeIsAlone) {
			original = rb::original::newSet();
		}
	}
	ConflictSet(const ConflictSet&) = delete;
	ConflictSet& operator=(const ConflictSet&) = delete;
	~ConflictSet() {
		if (original) {
			rb::original::destroySet(original);
		}
	}

	// The open batch has been decided, or is given up.
	void closeBatch() {
		if (originalBatch) {
			rb::original::destroyBatch(originalBatch);
			originalBatch = nullptr;
		}
		openBatch = nullptr;
	}

	// The tree cannot go on. Where it answers, neither can the resolver: the error ends its role, and a recovery
	// makes another. Where the original answers, it goes on alone.
	void failed() {
		TraceEvent(SevError, "ResolverTreeFailed")
		    .detail("History", toString(rb::settings().history_name()))
		    .detail("Backing", toString(rb::settings().backing_name()))
		    .detail("Reason", toString((*tree)->message()));
		tree.reset();
		if (treeIsAlone) {
			throw internal_error();
		}
	}

	// Whether a planted bug strikes; if so, it is counted.
	static bool strikes(ResolverBug* bugs, double probability) {
		const bool struck = deterministicRandom()->random01() < probability;
		if (struck) {
			bugs->hit();
		}
		return struck;
	}

	// What the status of a batch asks for besides an answer.
	void heed(rb::Status status, Version version, uint64_t needed, uint64_t available) {
		if (status == rb::Status::FellBack) {
			TraceEvent(SevWarnAlways, "ResolverTreeFallback")
			    .detail("Version", version)
			    .detail("NeededBytes", static_cast<int64_t>(needed))
			    .detail("AvailableBytes", static_cast<int64_t>(available));
		} else if (status != rb::Status::Done) {
			failed();
		}
	}

	// Traces the tree's figures, if the last time is long enough ago. There is no network, and no trace, in
	// skipListTest.
	void traceFigures() {
		if (!g_network || !tree || now() < nextTrace) {
			return;
		}
		nextTrace = now() + kTraceInterval;
		const rb::Figures figures = (*tree)->figures();
		TraceEvent("ResolverTree")
		    .detail("History", toString(rb::settings().history_name()))
		    .detail("Backing", toString(rb::settings().backing_name()))
		    .detail("MemoryBytes", static_cast<int64_t>(figures.memory_bytes))
		    .detail("PeakMemoryBytes", static_cast<int64_t>(figures.peak_memory_bytes))
		    .detail("BudgetBytes", static_cast<int64_t>(figures.budget_bytes))
		    .detail("RetainedVersions", figures.retained_versions)
		    .detail("Cutoff", figures.cutoff)
		    .detail("TooOldByCutoff", static_cast<int64_t>(figures.too_old_by_cutoff))
		    .detail("Reclamations", static_cast<int64_t>(figures.reclamations))
		    .detail("Fallbacks", static_cast<int64_t>(figures.fallbacks))
		    .detail("EmptyRanges", static_cast<int64_t>(figures.empty_ranges))
		    .detail("Differences", static_cast<int64_t>(figures.differences));
	}

	// Adds a transaction to the batch, the long way. Apart from the short one, so that it costs that one nothing.
	__attribute__((noinline)) void add(int t,
	                                   const CommitTransactionRef& transaction,
	                                   Version oldest,
	                                   ResolverBug* bugs,
	                                   std::map<int, VectorRef<int>>* conflictingReads) {
		if (originalBatch) {
			rb::original::addTransaction(originalBatch, transaction, oldest);
		}
		if (!tree) {
			return;
		}
		size_t reads = transaction.read_conflict_ranges.size();
		size_t writes = transaction.write_conflict_ranges.size();
		Version readVersion = transaction.read_snapshot;
		const bool report = transaction.report_conflicting_keys && conflictingReads;
		if (treeIsAlone) {
			bool tooOld = readVersion < oldest && reads > 0;
			if (bugs) {
				// They draw in the order in which the original draws, and only while they are switched on.
				if (tooOld && strikes(bugs, bugs->ignoreTooOldProbability)) {
					tooOld = false;
					// The tree has given up what lies below; this is the lowest version at which it still answers.
					readVersion = oldest;
				}
				if (!tooOld && strikes(bugs, bugs->ignoreReadSetProbability)) {
					reads = 0;
				}
				if (!tooOld && strikes(bugs, bugs->ignoreWriteSetProbability)) {
					writes = 0;
				}
			}
			if (report && !tooOld && reads > 0) {
				// The original has an entry for every transaction that could be reported, and the reply's size
				// depends on it.
				(*conflictingReads)[t];
			}
		}
		views.reserve(reads + writes);
		views.add(transaction, readVersion, report, reads, writes);
	}

	void resolve(Version version,
	             Version oldest,
	             std::vector<int>& committed,
	             std::map<int, VectorRef<int>>* conflictingReads,
	             Arena* arena) {
		if (!tree) {
			throw internal_error();
		}
		const rb::Outcome outcome = (*tree)->resolve(views.view(version, oldest));
		heed(outcome.status, version, outcome.needed, outcome.available);
		const int count = static_cast<int>(outcome.verdicts.size());
		const uint8_t* verdicts = outcome.verdicts.data();
		// Every transaction is written, and only those that commit stay.
		places.clear();
		places.reserve(count);
		int* next = places.take(count);
		int* const first = next;
		for (int t = 0; t < count; t++) {
			*next = t;
			next += verdicts[t] == kCommitted;
		}
		committed.insert(committed.end(), first, next);
		for (int t = 0; outcome.any_too_old && t < count; t++) {
			if (verdicts[t] == kTooOld) {
				tooOld.push_back(t);
			}
		}
		for (const rb::ReportedRead& read : outcome.reported) {
			(*conflictingReads)[static_cast<int>(read.transaction)].push_back(*arena, static_cast<int>(read.read));
		}
	}

	// Shows the tree what the original has decided about the batch. `compare` says whether they must agree.
	void shadow(Version version, Version oldest, const std::map<int, VectorRef<int>>* conflictingReads, bool compare) {
		verdicts.assign(views.size(), kConflict);
		for (int t : nonConflicting) {
			verdicts[t] = kCommitted;
		}
		for (int t : tooOld) {
			verdicts[t] = kTooOld;
		}
		reported.clear();
		if (conflictingReads) {
			for (const auto& [transaction, reads] : *conflictingReads) {
				for (int read : reads) {
					reported.push_back({ static_cast<uint32_t>(transaction), static_cast<uint32_t>(read) });
				}
			}
		}
		const rb::Comparison comparison = (*tree)->shadow(
		    views.view(version, oldest),
		    { { verdicts.data(), verdicts.size() }, { reported.data(), reported.size() }, compare });
		if (comparison.differences) {
			TraceEvent(SevError, "ResolverShadowDifference")
			    .detail("Version", version)
			    .detail("OldestVersion", oldest)
			    .detail("Cutoff", (*tree)->figures().cutoff)
			    .detail("Transactions", static_cast<int64_t>(comparison.differences))
			    .detail("First", toString((*tree)->message()));
		}
		heed(comparison.status, version, comparison.needed, comparison.available);
	}
};

namespace resolver_bridge {

ConflictSet* newHistory(Choice choice) {
	return new ConflictSet(choice);
}

} // namespace resolver_bridge

ConflictSet* newConflictSet() {
	return rb::newHistory(rb::settings().history());
}

void clearConflictSet(ConflictSet* cs, Version v) {
	if (cs->original) {
		rb::original::clearSet(cs->original, v);
	}
	if (cs->tree && (*cs->tree)->clear(v) != rb::Status::Done) {
		cs->failed();
	}
}

void destroyConflictSet(ConflictSet* cs) {
	delete cs;
}

ConflictBatch::ConflictBatch(ConflictSet* cs,
                             std::map<int, VectorRef<int>>* conflictingKeyRangeMap,
                             Arena* resolveBatchReplyArena)
  : cs(cs), transactionCount(0), conflictingKeyRangeMap(conflictingKeyRangeMap),
    resolveBatchReplyArena(resolveBatchReplyArena) {
	ASSERT(!cs->openBatch);
	cs->openBatch = this;
	cs->views.clear();
	cs->tooOld.clear();
	if (cs->original) {
		cs->originalBatch = rb::original::newBatch(cs->original, conflictingKeyRangeMap, resolveBatchReplyArena);
	}
}

ConflictBatch::~ConflictBatch() {
	if (cs->openBatch == this) {
		cs->closeBatch();
	}
}

void ConflictBatch::addTransaction(const CommitTransactionRef& transaction, Version newOldestVersion) {
	const int t = transactionCount++;
	const size_t reads = transaction.read_conflict_ranges.size();
	const size_t writes = transaction.write_conflict_ranges.size();
	if (cs->treeIsAlone && !bugs && !transaction.report_conflicting_keys && cs->views.fits(reads + writes)) [[likely]] {
		// Nearly always; the long way would do the same.
		cs->views.add(transaction, transaction.read_snapshot, false, reads, writes);
		return;
	}
	cs->add(t, transaction, newOldestVersion, bugs.get(), conflictingKeyRangeMap);
}

void ConflictBatch::detectConflicts(Version now,
                                    Version newOldestVersion,
                                    std::vector<int>& nonConflicting,
                                    std::vector<int>* tooOldTransactions) {
	if (cs->originalBatch) {
		cs->nonConflicting.clear();
		rb::original::detectConflicts(cs->originalBatch, now, newOldestVersion, cs->nonConflicting, &cs->tooOld);
		if (cs->tree) {
			cs->shadow(now, newOldestVersion, conflictingKeyRangeMap, !bugs);
		}
		nonConflicting.insert(nonConflicting.end(), cs->nonConflicting.begin(), cs->nonConflicting.end());
	} else {
		cs->resolve(now, newOldestVersion, nonConflicting, conflictingKeyRangeMap, resolveBatchReplyArena);
	}
	if (tooOldTransactions) {
		tooOldTransactions->insert(tooOldTransactions->end(), cs->tooOld.begin(), cs->tooOld.end());
	}
	cs->closeBatch();
	cs->traceFigures();
}

void ConflictBatch::GetTooOldTransactions(std::vector<int>& tooOldTransactions) {
	tooOldTransactions.insert(tooOldTransactions.end(), cs->tooOld.begin(), cs->tooOld.end());
}
