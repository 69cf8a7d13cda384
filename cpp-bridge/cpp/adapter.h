// What the files of the adapter share.
#pragma once

#include "bridge.rs.h"

struct ConflictSet;

namespace resolver_bridge {

// The settings of this process. The first call reads the environment, and ends the process where a value is not
// allowed.
const Settings& settings();

// A history of the given kind, whatever the settings choose. For FoundationDB's newConflictSet, and for tests.
ConflictSet* newHistory(Choice);

} // namespace resolver_bridge
