// FoundationDB's own conflict set, under neutral names. Its source is compiled unchanged, with its symbols renamed by
// the definitions in original_names.txt; original.cpp is compiled with the same ones, and sees the header under the
// new names.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "flow/flow.h"
#include "fdbclient/CommitTransaction.h"

namespace resolver_bridge::original {

struct Set;
struct Batch;

Set* newSet();
void clearSet(Set*, int64_t version);
void destroySet(Set*);

Batch* newBatch(Set*, std::map<int, VectorRef<int>>* conflictingKeyRangeMap, Arena* replyArena);
void destroyBatch(Batch*);
void addTransaction(Batch*, const CommitTransactionRef&, int64_t newOldestVersion);
void detectConflicts(Batch*,
                     int64_t now,
                     int64_t newOldestVersion,
                     std::vector<int>& nonConflicting,
                     std::vector<int>* tooOldTransactions);
void tooOldTransactions(Batch*, std::vector<int>&);

// What `fdbserver -r skiplisttest` runs and prints in a server without this overlay.
void ownTest();

} // namespace resolver_bridge::original
