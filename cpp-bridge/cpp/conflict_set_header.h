// FoundationDB's own header of its conflict set, wherever the release has it; see fdb-patches/README.md for the
// releases.
#pragma once

#if __has_include("fdbserver/ConflictSet.h")
#include "fdbserver/ConflictSet.h"
#else
#include "ConflictSet.h"
#endif
