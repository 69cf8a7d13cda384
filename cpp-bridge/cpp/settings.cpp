#include "adapter.h"

#include <cstdio>
#include <cstdlib>

namespace resolver_bridge {

const Settings& settings() {
	static const rust::Box<Settings> loaded = [] {
		rust::Box<Settings> settings = load_settings();
		const rust::Str error = settings->error();
		if (!error.empty()) {
			fprintf(stderr, "ERROR: %.*s\n", static_cast<int>(error.size()), error.data());
			fflush(stderr);
			// The process is not up yet: there is nothing to wind down.
			std::_Exit(EXIT_FAILURE);
		}
		return settings;
	}();
	return *loaded;
}

namespace {
// Before main: a bad value stops the server when it starts, not when it becomes a resolver.
[[maybe_unused]] const Settings& readAtStart = settings();
} // namespace

} // namespace resolver_bridge
