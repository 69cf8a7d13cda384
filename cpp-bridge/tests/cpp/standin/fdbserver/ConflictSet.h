// A stand-in with the names of FoundationDB that the adapter uses, and of the others one that is incomplete here.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "fdbclient/CommitTransaction.h"

struct ResolverBug {
	double ignoreTooOldProbability = 0;
	double ignoreWriteSetProbability = 0;
	double ignoreReadSetProbability = 0;
	int hits = 0;
	void hit() { hits++; }
};

struct ResolverBugID {};

struct SimBugInjector {
	static std::shared_ptr<ResolverBug>& planted() {
		static std::shared_ptr<ResolverBug> bug;
		return bug;
	}
	template <class T>
	std::shared_ptr<T> get(const ResolverBugID&) {
		return planted();
	}
};

struct ConflictSet;
ConflictSet* newConflictSet();
void clearConflictSet(ConflictSet*, Version);
void destroyConflictSet(ConflictSet*);

struct ConflictBatch {
	explicit ConflictBatch(ConflictSet*,
	                       std::map<int, VectorRef<int>>* conflictingKeyRangeMap = nullptr,
	                       Arena* resolveBatchReplyArena = nullptr);
	~ConflictBatch();
	void addTransaction(const CommitTransactionRef&, Version newOldestVersion);
	void detectConflicts(Version now,
	                     Version newOldestVersion,
	                     std::vector<int>& nonConflicting,
	                     std::vector<int>* tooOldTransactions = nullptr);
	void GetTooOldTransactions(std::vector<int>&);

private:
	ConflictSet* cs;
	std::vector<struct TransactionInfo> transactionInfo;
	std::vector<struct KeyInfo> points;
	int transactionCount;
	std::vector<struct ReadConflictRange> combinedReadConflictRanges;
	std::map<int, VectorRef<int>>* conflictingKeyRangeMap;
	Arena* resolveBatchReplyArena;
	std::shared_ptr<ResolverBug> bugs = SimBugInjector().get<ResolverBug>(ResolverBugID());
	bool ignoreTooOld() const;
	bool ignoreWriteSet() const;
	bool ignoreReadSet() const;
};
