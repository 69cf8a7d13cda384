// A stand-in with the names of FoundationDB that the adapter uses.
#pragma once

#include "flow/flow.h"

struct CommitTransactionRef {
	VectorRef<KeyRangeRef> read_conflict_ranges;
	VectorRef<KeyRangeRef> write_conflict_ranges;
	Version read_snapshot = 0;
	bool report_conflicting_keys = false;
};
