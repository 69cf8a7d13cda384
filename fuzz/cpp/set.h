// FoundationDB's ConflictSet surface, over the bridge, for a fuzz target.
#pragma once

#include <cstdint>
#include <memory>

#include "rust/cxx.h"

struct ConflictSet;

namespace resolver_fuzz {

struct TransactionData;
struct Decisions;

// A history behind `ConflictBatch`, driven as a resolver drives it.
class Set {
	ConflictSet* set;

public:
	explicit Set(bool shadow);
	~Set();
	Set(const Set&) = delete;

	void clear(int64_t version);
	// Decides a batch. `keys` holds the begins and ends of all ranges, in the order of the transactions, each
	// transaction's reads first; `lengths` holds their lengths.
	Decisions decide(int64_t version,
	                 int64_t oldest,
	                 rust::Slice<const TransactionData> transactions,
	                 rust::Slice<const uint8_t> keys,
	                 rust::Slice<const uint32_t> lengths);
};

std::unique_ptr<Set> new_set(bool shadow);

} // namespace resolver_fuzz
