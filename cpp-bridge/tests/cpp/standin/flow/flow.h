// A stand-in with the names of FoundationDB that the adapter uses, and no more than it uses of each.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#define ASSERT(condition)                                                                                              \
	do {                                                                                                               \
		if (!(condition)) {                                                                                            \
			fprintf(stderr, "assertion failed: %s\n", #condition);                                                     \
			abort();                                                                                                   \
		}                                                                                                              \
	} while (false)

using Version = int64_t;

struct Error {
	int code;
};
inline Error internal_error() {
	return Error{ 4100 };
}

// Memory that goes when the arena goes.
class Arena {
	std::vector<std::unique_ptr<uint8_t[]>> pieces;

public:
	void* allocate(size_t size) {
		pieces.push_back(std::make_unique<uint8_t[]>(size));
		return pieces.back().get();
	}
};
inline void* operator new[](size_t size, Arena& arena) {
	return arena.allocate(size);
}
inline void operator delete[](void*, Arena&) {}

class StringRef {
	const uint8_t* data = nullptr;
	int length = 0;

public:
	StringRef() = default;
	StringRef(const uint8_t* data, int length) : data(data), length(length) {}
	const uint8_t* begin() const { return data; }
	int size() const { return length; }
};

template <class T>
class VectorRef {
	T* data = nullptr;
	int count = 0;
	int capacity = 0;

public:
	int size() const { return count; }
	bool empty() const { return count == 0; }
	const T* begin() const { return data; }
	const T* end() const { return data + count; }
	void push_back(Arena& arena, const T& value) {
		if (count == capacity) {
			const int larger = capacity ? capacity * 2 : 4;
			T* row = static_cast<T*>(arena.allocate(larger * sizeof(T)));
			for (int i = 0; i < count; i++) {
				new (row + i) T(data[i]);
			}
			data = row;
			capacity = larger;
		}
		new (data + count++) T(value);
	}
};

template <class T>
struct Standalone : T {};

struct KeyRangeRef {
	StringRef begin, end;
	KeyRangeRef(StringRef begin, StringRef end) : begin(begin), end(end) {}
};

// Time, as a simulated network has it: it stands until somebody moves it. Without a network there is none.
struct INetwork {
	double time = 0;
};
inline INetwork* g_network = nullptr;
inline double now() {
	return g_network->time;
}

struct IRandom {
	// Every draw is counted.
	uint64_t draws = 0;
	double random01() {
		draws++;
		return 0.5;
	}
};
inline IRandom* deterministicRandom() {
	static IRandom random;
	return &random;
}

enum Severity { SevInfo = 10, SevWarnAlways = 30, SevError = 40 };

// Keeps what was traced.
struct TraceEvent {
	struct Event {
		Severity severity;
		std::string type;
		std::vector<std::pair<std::string, std::string>> details;
		std::string get(const std::string& name) const {
			for (const auto& [key, value] : details) {
				if (key == name) {
					return value;
				}
			}
			return "";
		}
	};
	static std::vector<Event>& all() {
		static std::vector<Event> events;
		return events;
	}
	explicit TraceEvent(const char* type) : TraceEvent(SevInfo, type) {}
	TraceEvent(Severity severity, const char* type) { all().push_back({ severity, type, {} }); }
	TraceEvent& detail(const char* name, const std::string& value) {
		all().back().details.emplace_back(name, value);
		return *this;
	}
	TraceEvent& detail(const char* name, int64_t value) { return detail(name, std::to_string(value)); }
};
