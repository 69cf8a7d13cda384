// What `fdbserver -r skiplisttest` runs: FoundationDB's own test of its skip list, and then its workload once on the
// skip list and once on the tree, both behind the same calls that a resolver makes.
#include "adapter.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "conflict_set_header.h"
#include "flow/flow.h"
#include "original.h"

namespace {

namespace rb = resolver_bridge;

constexpr int kBatches = 500;
constexpr int kTransactions = 2500;
constexpr int kKeys = 20000000;
constexpr int kLongestRange = 10;
constexpr int kKeyLength = 16;
constexpr Version kWindow = 50;

// A small generator of its own: the workload is the same on every run, and no other random number changes by it.
class Draws {
	uint64_t state = 1;

public:
	int below(int bound) {
		uint64_t mixed = (state += 0x9e3779b97f4a7c15);
		mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
		mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
		mixed ^= mixed >> 31;
		return static_cast<int>(mixed % static_cast<uint64_t>(bound));
	}
};

// Dots, then the number, big-endian.
StringRef key(Arena& arena, int number) {
	uint8_t* bytes = new (arena) uint8_t[kKeyLength];
	for (int i = 0; i < kKeyLength; i++) {
		const int shift = 8 * (kKeyLength - 1 - i);
		bytes[i] = shift < 32 ? static_cast<uint8_t>(static_cast<uint32_t>(number) >> shift) : '.';
	}
	return StringRef(bytes, kKeyLength);
}

KeyRangeRef range(Arena& arena, Draws& draws) {
	const int begin = draws.below(kKeys);
	const int end = begin + 1 + draws.below(kLongestRange);
	return KeyRangeRef(key(arena, begin), key(arena, end));
}

using Decisions = std::vector<std::vector<int>>;

// One pass through a history; prints its speed.
Decisions run(const char* name, rb::Choice choice, const std::vector<std::vector<CommitTransactionRef>>& batches) {
	using Clock = std::chrono::steady_clock;
	ConflictSet* set = rb::newHistory(choice);
	Decisions committed(batches.size());
	Clock::duration detecting{};
	const auto start = Clock::now();
	for (size_t i = 0; i < batches.size(); i++) {
		const Version version = static_cast<Version>(i);
		ConflictBatch batch(set);
		for (const CommitTransactionRef& transaction : batches[i]) {
			batch.addTransaction(transaction, version);
		}
		const auto added = Clock::now();
		batch.detectConflicts(version + kWindow, version, committed[i]);
		detecting += Clock::now() - added;
	}
	const double whole = std::chrono::duration<double>(Clock::now() - start).count();
	destroyConflictSet(set);
	size_t count = 0;
	for (const auto& batch : committed) {
		count += batch.size();
	}
	const double millions = kBatches * kTransactions / 1e6;
	printf("%-9s  whole %.3f s (%.3f million transactions a second), detect %.3f s, %zu committed\n",
	       name,
	       whole,
	       millions / whole,
	       std::chrono::duration<double>(detecting).count(),
	       count);
	return committed;
}

} // namespace

void skipListTest() {
	rb::original::ownTest();

	printf("\nSkip list and tree: %d batches of %d transactions\n", kBatches, kTransactions);
	Arena arena;
	Draws draws;
	std::vector<std::vector<CommitTransactionRef>> batches(kBatches);
	for (int i = 0; i < kBatches; i++) {
		batches[i].resize(kTransactions);
		for (CommitTransactionRef& transaction : batches[i]) {
			transaction.read_snapshot = i;
			transaction.read_conflict_ranges.push_back(arena, range(arena, draws));
			transaction.write_conflict_ranges.push_back(arena, range(arena, draws));
		}
	}
	const Decisions skipList = run("skip list", rb::Choice::SkipList, batches);
	const Decisions tree = run("tree", rb::Choice::Tree, batches);
	printf("decisions: %s\n", skipList == tree ? "equal" : "DIFFERENT");
	if (skipList != tree) {
		throw internal_error();
	}
}
