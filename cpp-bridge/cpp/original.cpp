// Compiled with the definitions of original_names.txt: what the header declares here is the original under its new
// names.
#include "original.h"

#include "conflict_set_header.h"

void skipListTest();

namespace resolver_bridge::original {

namespace {
ConflictSet* unwrap(Set* set) {
	return reinterpret_cast<ConflictSet*>(set);
}
ConflictBatch* unwrap(Batch* batch) {
	return reinterpret_cast<ConflictBatch*>(batch);
}
} // namespace

Set* newSet() {
	return reinterpret_cast<Set*>(newConflictSet());
}

void clearSet(Set* set, int64_t version) {
	clearConflictSet(unwrap(set), version);
}

void destroySet(Set* set) {
	destroyConflictSet(unwrap(set));
}

Batch* newBatch(Set* set, std::map<int, VectorRef<int>>* conflictingKeyRangeMap, Arena* replyArena) {
	return reinterpret_cast<Batch*>(new ConflictBatch(unwrap(set), conflictingKeyRangeMap, replyArena));
}

void destroyBatch(Batch* batch) {
	delete unwrap(batch);
}

void addTransaction(Batch* batch, const CommitTransactionRef& transaction, int64_t newOldestVersion) {
	unwrap(batch)->addTransaction(transaction, newOldestVersion);
}

void detectConflicts(Batch* batch,
                     int64_t now,
                     int64_t newOldestVersion,
                     std::vector<int>& nonConflicting,
                     std::vector<int>* tooOldTransactions) {
	unwrap(batch)->detectConflicts(now, newOldestVersion, nonConflicting, tooOldTransactions);
}

void tooOldTransactions(Batch* batch, std::vector<int>& transactions) {
	unwrap(batch)->GetTooOldTransactions(transactions);
}

void ownTest() {
	skipListTest();
}

} // namespace resolver_bridge::original
