// The C++ side, driven as a resolver drives it. Every command prints what it has found and exits 0, or says what is
// wrong and exits 1; which history answers says the environment, as in a server. The caller is tests/cpp.rs.
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "adapter.h"
#include "fdbserver/ConflictSet.h"
#include "flow/flow.h"
#include "layout.h"

extern bool standinPlantsDifference;
void skipListTest();

namespace {

namespace rb = resolver_bridge;
using Reports = std::map<int, VectorRef<int>>;

int failures = 0;

void expect(bool holds, const char* what) {
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		failures++;
	}
}
#define EXPECT(condition) expect((condition), #condition)

size_t traced(const char* type) {
	size_t count = 0;
	for (const TraceEvent::Event& event : TraceEvent::all()) {
		count += event.type == type;
	}
	return count;
}

const TraceEvent::Event& lastTraced(const char* type) {
	static const TraceEvent::Event none{ SevInfo, "", {} };
	const auto& events = TraceEvent::all();
	for (auto event = events.rbegin(); event != events.rend(); ++event) {
		if (event->type == type) {
			return *event;
		}
	}
	return none;
}

// A batch whose keys are in its arena.
struct Input {
	Arena arena;
	Version version = 0, oldest = 0;
	std::vector<CommitTransactionRef> transactions;

	StringRef key(const std::string& text) {
		if (text.empty()) {
			return StringRef();
		}
		uint8_t* bytes = new (arena) uint8_t[text.size()];
		memcpy(bytes, text.data(), text.size());
		return StringRef(bytes, static_cast<int>(text.size()));
	}
	CommitTransactionRef& add(Version readVersion, bool report = false) {
		transactions.emplace_back();
		transactions.back().read_snapshot = readVersion;
		transactions.back().report_conflicting_keys = report;
		return transactions.back();
	}
	void read(const std::string& begin, const std::string& end) {
		transactions.back().read_conflict_ranges.push_back(arena, KeyRangeRef(key(begin), key(end)));
	}
	void write(const std::string& begin, const std::string& end) {
		transactions.back().write_conflict_ranges.push_back(arena, KeyRangeRef(key(begin), key(end)));
	}
};

struct Decided {
	std::vector<uint8_t> verdicts;
	std::vector<std::set<int>> reported;
	std::vector<int> committed, tooOld;
	size_t entries = 0;
	// For measurement: what the calls of a resolver cost, and nothing else.
	__attribute__((noinline)) void decide(ConflictSet* set, const Input& input, Reports* reports, Arena* arena) {
		ConflictBatch batch(set, reports, arena);
		for (const CommitTransactionRef& transaction : input.transactions) {
			batch.addTransaction(transaction, input.oldest);
		}
		batch.detectConflicts(input.version, input.oldest, committed, &tooOld);
		std::vector<int> again;
		batch.GetTooOldTransactions(again);
		if (again != tooOld) {
			failures++;
		}
	}
};

Decided decide(ConflictSet* set, const Input& input) {
	Decided decided;
	Reports reports;
	Arena arena;
	decided.decide(set, input, &reports, &arena);
	decided.verdicts.assign(input.transactions.size(), 0);
	decided.reported.resize(input.transactions.size());
	for (int t : decided.committed) {
		decided.verdicts[t] = 3;
	}
	for (int t : decided.tooOld) {
		decided.verdicts[t] = 1;
	}
	decided.entries = reports.size();
	for (const auto& [t, reads] : reports) {
		decided.reported[t].insert(reads.begin(), reads.end());
	}
	return decided;
}

struct Set {
	ConflictSet* set;
	Set() : set(newConflictSet()) {}
	explicit Set(rb::Choice choice) : set(rb::newHistory(choice)) {}
	~Set() { destroyConflictSet(set); }
	Set(const Set&) = delete;
};

// A plain capture, field by field. The format is documented where the Rust side reads it.
class Capture {
	std::vector<char> bytes;
	size_t at = 8;

	template <class T>
	T number() {
		T value;
		memcpy(&value, bytes.data() + at, sizeof(T));
		at += sizeof(T);
		return value;
	}
	StringRef key() {
		const uint32_t length = number<uint32_t>();
		// An empty key has no address, as in a default-made StringRef.
		const uint8_t* begin = reinterpret_cast<const uint8_t*>(bytes.data() + at);
		at += length;
		return length ? StringRef(begin, static_cast<int>(length)) : StringRef();
	}

public:
	explicit Capture(const char* path) {
		std::ifstream file(path, std::ios::binary);
		bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
		if (bytes.size() < 8 || memcmp(bytes.data(), "FDBCAP01", 8) != 0) {
			fprintf(stderr, "%s: not a plain capture\n", path);
			exit(1);
		}
	}
	bool ended() const { return at == bytes.size(); }
	// Reads a record; `batch` gets the input and the recorded decisions, `clear` a version.
	void record(const std::function<void(Input&, const Decided&)>& batch, const std::function<void(Version)>& clear) {
		if (number<char>() == 'C') {
			return clear(number<int64_t>());
		}
		Input input;
		input.version = number<int64_t>();
		input.oldest = number<int64_t>();
		const uint32_t count = number<uint32_t>();
		for (uint32_t t = 0; t < count; t++) {
			const Version readVersion = number<int64_t>();
			CommitTransactionRef& transaction = input.add(readVersion, number<uint8_t>() != 0);
			for (VectorRef<KeyRangeRef>* ranges : { &transaction.read_conflict_ranges, &transaction.write_conflict_ranges }) {
				for (uint32_t left = number<uint32_t>(); left > 0; left--) {
					const StringRef begin = key();
					ranges->push_back(input.arena, KeyRangeRef(begin, key()));
				}
			}
		}
		Decided recorded;
		for (uint32_t t = 0; t < count; t++) {
			recorded.verdicts.push_back(number<uint8_t>());
			recorded.reported.emplace_back();
			if (input.transactions[t].report_conflicting_keys) {
				for (uint32_t left = number<uint32_t>(); left > 0; left--) {
					recorded.reported.back().insert(static_cast<int>(number<uint32_t>()));
				}
			}
		}
		batch(input, recorded);
	}
};

// Replays captures, each through a fresh history, and compares every verdict and report with the recorded one.
void replay(const std::vector<const char*>& paths) {
	INetwork network;
	g_network = &network;
	size_t batches = 0, transactions = 0, mismatches = 0;
	for (const char* path : paths) {
		Set set;
		Capture capture(path);
		while (!capture.ended()) {
			capture.record(
			    [&](const Input& input, const Decided& recorded) {
				    network.time += 0.1;
				    const Decided decided = decide(set.set, input);
				    for (size_t t = 0; t < input.transactions.size(); t++) {
					    if (decided.verdicts[t] != recorded.verdicts[t] || decided.reported[t] != recorded.reported[t]) {
						    fprintf(stderr,
						            "%s: batch %zu, transaction %zu: recorded %d, decided %d\n",
						            path,
						            batches,
						            t,
						            recorded.verdicts[t],
						            decided.verdicts[t]);
						    mismatches++;
					    }
				    }
				    batches++;
				    transactions += input.transactions.size();
			    },
			    [&](Version version) { clearConflictSet(set.set, version); });
		}
	}
	printf("%zu files, %zu batches, %zu transactions, %zu mismatches\n", paths.size(), batches, transactions, mismatches);
	for (const TraceEvent::Event& event : TraceEvent::all()) {
		if (event.severity > SevInfo) {
			fprintf(stderr, "%s: %s %s\n", event.type.c_str(), event.get("First").c_str(), event.get("Reason").c_str());
			failures++;
		}
	}
	if (rb::settings().history() != rb::Choice::SkipList && batches > 0) {
		EXPECT(traced("ResolverTree") > 0);
		// At most one in five seconds, ten batches a second, and one at each history's start.
		EXPECT(traced("ResolverTree") <= paths.size() + batches / 50);
	}
	failures += mismatches > 0;
}

// The bytes of memory that the process holds.
size_t resident() {
	std::ifstream statm("/proc/self/statm");
	size_t size = 0, pages = 0;
	statm >> size >> pages;
	return pages * 4096;
}

// One small batch; everybody commits.
void smallBatch(Input& input, Version version, const std::string& prefix) {
	input.version = version;
	input.oldest = version - 5000;
	for (int t = 0; t < 20; t++) {
		const std::string key = prefix + std::to_string(t);
		input.add(version - 1);
		input.read(key, key + '\0');
		input.write(key, key + '\0');
	}
}

void lifetimes() {
	Input input;
	smallBatch(input, 100, "some/rather/long/common/prefix/of/keys/");
	const auto round = [&](int sets) {
		for (int i = 0; i < sets; i++) {
			Set set;
			EXPECT(decide(set.set, input).committed.size() == input.transactions.size());
		}
	};
	round(500);
	const size_t before = resident();
	round(10000);
	const size_t after = resident();
	const size_t growth = after > before ? after - before : 0;
	printf("10000 sets made and destroyed, %zu bytes of growth\n", growth);
	// One leaked set would hold at least a page of 64 KiB.
	EXPECT(growth < (size_t{ 10000 } * 65536) / 100);
}

// A resolver keeps a batch after it was decided, and drops it when the next one has begun, or has been decided.
void overlapping() {
	Set set;
	std::map<Version, Input> inputs;
	std::unique_ptr<ConflictBatch> kept;
	for (Version version = 1; version <= 200; version++) {
		Input& input = inputs[version];
		smallBatch(input, version, "key");
		auto next = std::make_unique<ConflictBatch>(set.set);
		for (const CommitTransactionRef& transaction : input.transactions) {
			next->addTransaction(transaction, input.oldest);
		}
		if (version % 2 == 0) {
			kept.reset();
		}
		std::vector<int> committed;
		next->detectConflicts(version, input.oldest, committed);
		EXPECT(committed.size() == input.transactions.size());
		kept = std::move(next);
	}
}

// Two histories in turn; neither knows of the other.
void twoSets() {
	Set left, right;
	for (Version version = 1; version <= 200; version++) {
		Input onLeft, onRight;
		onLeft.version = onRight.version = version;
		onLeft.oldest = onRight.oldest = version - 100;
		onLeft.add(version - 1, true);
		onLeft.read("a", "b");
		onLeft.write("a", "a1");
		onRight.add(version - 2, true);
		onRight.read("a", "b");
		onRight.write("a", "a1");
		// On the left each has seen the write before; on the right only every second, after a loser. The first reads
		// below all versions.
		EXPECT(decide(left.set, onLeft).verdicts[0] == 3);
		const Decided decided = decide(right.set, onRight);
		const bool commits = version % 2 == 0;
		EXPECT(decided.verdicts[0] == (commits ? 3 : 0));
		EXPECT(decided.reported[0] == (commits ? std::set<int>{} : std::set<int>{ 0 }));
	}
}

// Under the least budget, a batch of long keys that no empty history holds, and what comes after it.
void fallback() {
	INetwork network;
	g_network = &network;
	const rb::Choice choice = rb::settings().history();
	Set set;
	Input small;
	smallBatch(small, 10, "k");
	EXPECT(decide(set.set, small).committed.size() == 20);

	Input large;
	large.version = 20;
	large.oldest = -100;
	for (int t = 0; t < 40; t++) {
		large.add(15, true);
		large.read(std::to_string(t), std::to_string(t) + '\0');
		const std::string begin = "long" + std::to_string(t) + std::string(60000, 'x');
		large.write(begin, begin + '\0');
	}
	// The verdicts stand.
	EXPECT(decide(set.set, large).committed.size() == 40);
	EXPECT(traced("ResolverTreeFallback") == 1);
	const TraceEvent::Event& event = lastTraced("ResolverTreeFallback");
	EXPECT(event.severity == SevWarnAlways && event.get("Version") == "20");
	EXPECT(std::stoll(event.get("NeededBytes")) > std::stoll(event.get("AvailableBytes")));

	// Who read before the batch conflicts, wherever it read; who read at it does not. In shadow mode the original
	// knows better.
	Input after;
	after.version = 30;
	after.oldest = -90;
	after.add(19, true);
	after.read("untouched", "untouched1");
	after.write("w", "x");
	after.add(20, true);
	after.read("untouched", "untouched1");
	// Depends on the first one's verdict.
	after.add(25, true);
	after.read("w", "x");
	network.time = 5;
	const Decided decided = decide(set.set, after);
	const std::vector<uint8_t> tree{ 0, 3, 3 }, original{ 3, 3, 0 };
	EXPECT(decided.verdicts == (choice == rb::Choice::Tree ? tree : original));
	EXPECT(decided.reported[0] == (choice == rb::Choice::Tree ? std::set<int>{ 0 } : std::set<int>{}));

	const TraceEvent::Event& figures = lastTraced("ResolverTree");
	EXPECT(figures.get("Fallbacks") == "1");
	EXPECT(figures.get("Differences") == "0");
	EXPECT(figures.get("TooOldByCutoff") == (choice == rb::Choice::Tree ? "0" : "1"));
	EXPECT(figures.get("RetainedVersions") == "10");
	EXPECT(traced("ResolverShadowDifference") == 0);
}

// Under the least budget, more history than it holds: a cutoff above `oldest`, and transactions that only the tree
// finds too old.
void cutoff() {
	INetwork network;
	g_network = &network;
	Set set;
	size_t tooOld = 0, conflicts = 0;
	for (Version version = 1; version <= 400; version++) {
		Input input;
		input.version = version;
		input.oldest = -1000;
		// A reader from far back, with a write that the next one reads, and a load of writes.
		input.add(std::max<Version>(version - 300, 0), true);
		input.read("never written", "never written1");
		input.write("chain", "chain1");
		input.add(version - 1, true);
		input.read("chain", "chain1");
		for (int t = 0; t < 200; t++) {
			const std::string key = std::string(40, 'k') + std::to_string(version) + '/' + std::to_string(t);
			input.add(version - 1);
			input.write(key, key + '\0');
		}
		const Decided decided = decide(set.set, input);
		tooOld += decided.tooOld.size();
		conflicts += decided.verdicts[1] == 0;
		network.time += 1;
	}
	const TraceEvent::Event& figures = lastTraced("ResolverTree");
	const long long byCutoff = std::stoll(figures.get("TooOldByCutoff"));
	EXPECT(byCutoff > 50);
	EXPECT(std::stoll(figures.get("Reclamations")) > 0);
	EXPECT(std::stoll(figures.get("Cutoff")) > 0);
	EXPECT(std::stoll(figures.get("MemoryBytes")) <= std::stoll(figures.get("BudgetBytes")));
	EXPECT(figures.get("Differences") == "0");
	EXPECT(traced("ResolverShadowDifference") == 0);
	if (rb::settings().history() == rb::Choice::Tree) {
		EXPECT(tooOld > 50);
		EXPECT(conflicts == 400 - tooOld);
	} else {
		EXPECT(tooOld == 0 && conflicts == 400);
	}
	printf("%zu too old, %lld by the cutoff\n", tooOld, byCutoff);
}

// In shadow mode: a decision of the original that the tree cannot agree with.
void difference() {
	Set set;
	Input input;
	smallBatch(input, 100, "k");
	standinPlantsDifference = true;
	// The original's answer counts, wrong as it is.
	EXPECT(decide(set.set, input).committed.size() == 19);
	EXPECT(traced("ResolverShadowDifference") == 1);
	const TraceEvent::Event event = lastTraced("ResolverShadowDifference");
	EXPECT(event.severity == SevError && event.get("Version") == "100" && event.get("Transactions") == "1");
	EXPECT(event.get("First") == "transaction 0, read version 99: the skip list decides conflict, the tree committed");
	// Both have applied what the original committed: they agree again.
	Input next;
	smallBatch(next, 200, "k");
	for (CommitTransactionRef& transaction : next.transactions) {
		transaction.read_snapshot = 50;
	}
	const Decided decided = decide(set.set, next);
	EXPECT(decided.committed == std::vector<int>{ 0 });
	EXPECT(traced("ResolverShadowDifference") == 1);
}

// The planted bugs: drawn as the original draws, in effect, and in shadow mode the original's alone.
void bugs() {
	const rb::Choice choice = rb::settings().history();
	IRandom* random = deterministicRandom();
	const auto batch = [](Input& input, Version version) {
		input.version = version;
		input.oldest = version - 50;
		input.add(version - 100, true); // too old
		input.read("a", "b");
		input.write("a", "b");
		input.add(version - 20, true); // in conflict with the batch before
		input.read("c", "d");
		input.write("c", "d");
		input.add(version - 1);
		input.write("c", "d");
	};
	const auto run = [&](ConflictSet* set, Version version) {
		Input input;
		batch(input, version);
		return decide(set, input).verdicts;
	};
	using Verdicts = std::vector<uint8_t>;
	{
		Set set;
		EXPECT((run(set.set, 200) == Verdicts{ 1, 3, 3 }));
		EXPECT((run(set.set, 210) == Verdicts{ 1, 0, 3 }));
		EXPECT(random->draws == 0);
	}
	auto& planted = SimBugInjector::planted();
	{
		Set set;
		planted = std::make_shared<ResolverBug>();
		EXPECT((run(set.set, 200) == Verdicts{ 1, 3, 3 }));
		// One draw for who is too old, two for each of the others.
		EXPECT(random->draws == 5 && planted->hits == 0);
		planted->ignoreReadSetProbability = 1;
		EXPECT((run(set.set, 210) == Verdicts{ 1, 3, 3 }));
		EXPECT(random->draws == 10 && planted->hits == 2);
		planted->ignoreReadSetProbability = 0;
		planted->ignoreTooOldProbability = 1;
		EXPECT((run(set.set, 220) == Verdicts{ 3, 0, 3 }));
		EXPECT(random->draws == 17 && planted->hits == 3);
		planted->ignoreTooOldProbability = 0;
		planted->ignoreWriteSetProbability = 1;
		EXPECT((run(set.set, 230) == Verdicts{ 1, 0, 3 }));
		planted = nullptr;
		// The write at 230 was ignored; the last one at 220.
		EXPECT((run(set.set, 241) == Verdicts{ 1, 3, 3 }));
		EXPECT((run(set.set, 300) == Verdicts{ 1, 3, 3 }));
		EXPECT((run(set.set, 310) == Verdicts{ 1, 0, 3 }));
	}
	EXPECT(traced("ResolverShadowDifference") == 0);
	if (choice == rb::Choice::Shadow) {
		// Once nobody can have read what the bugs left, the two are compared again.
		Set set;
		planted = std::make_shared<ResolverBug>();
		run(set.set, 200);
		planted = nullptr;
		standinPlantsDifference = true;
		run(set.set, 249);
		EXPECT(traced("ResolverShadowDifference") == 0);
		standinPlantsDifference = true;
		run(set.set, 250);
		EXPECT(traced("ResolverShadowDifference") == 1);
	}
}

// The replies' map has an entry for every transaction that could be reported, as the original's has.
void entries() {
	Input input;
	input.version = 100;
	input.oldest = 50;
	input.add(60, true);
	input.read("a", "b");
	input.add(60);
	input.read("a", "b");
	input.add(40, true); // too old
	input.read("a", "b");
	input.add(60, true); // no reads
	input.write("a", "b");
	Set set;
	EXPECT(decide(set.set, input).entries == 1);
	// Without a map, nobody is reported.
	Input next;
	smallBatch(next, 200, "k");
	std::vector<int> committed;
	ConflictBatch batch(set.set);
	next.transactions[0].report_conflicting_keys = rb::settings().history() == rb::Choice::Tree;
	next.transactions[0].read_snapshot = -1;
	for (const CommitTransactionRef& transaction : next.transactions) {
		batch.addTransaction(transaction, -100);
	}
	batch.detectConflicts(200, -100, committed);
	EXPECT(committed.size() == 19);
}

// Ranges that cover no key decide nothing and write nothing, but a transaction with one has read.
void emptyRanges() {
	INetwork network;
	g_network = &network;
	Set set;
	Input first;
	first.version = 10;
	first.oldest = -90;
	first.add(0);
	first.write("k", "k");
	first.write("m", "c");
	first.write("x", "y");
	EXPECT((decide(set.set, first).verdicts == std::vector<uint8_t>{ 3 }));
	Input second;
	second.version = 20;
	second.oldest = 8;
	second.add(9, true);
	second.read("z", "a");
	second.read("d", "m");
	second.read("x", "x1");
	second.add(7);
	second.read("q", "q");
	second.add(9);
	second.read("x", "x");
	network.time = 5;
	const Decided decided = decide(set.set, second);
	EXPECT((decided.verdicts == std::vector<uint8_t>{ 0, 1, 3 }));
	EXPECT(decided.reported[0] == std::set<int>{ 2 });
	// The reads of who is too old are not looked at.
	EXPECT(lastTraced("ResolverTree").get("EmptyRanges") == "4");
}

// How a new database begins: nothing at version 0, and then a recovery's jump.
void beginning() {
	Set set;
	Input first;
	first.version = 0;
	first.oldest = -5000;
	EXPECT(decide(set.set, first).verdicts.empty());
	Input second;
	smallBatch(second, 100000000, "k");
	second.add(100000000, true);
	second.read("k", "l");
	const Decided decided = decide(set.set, second);
	EXPECT(decided.committed.size() == 20);
	// It reads what the others write.
	EXPECT(decided.reported[20] == std::set<int>{ 0 });
	EXPECT(!traced("ResolverTreeFailed") && !traced("ResolverShadowDifference"));
}

// What crosses the bridge when something is wrong: values, never an exception, never an unwinding panic.
void boundary() {
	const rb::Settings& settings = rb::settings();
	const auto message = [](const rust::Box<rb::TreeHistory>& tree) {
		return std::string(tree->message().data(), tree->message().size());
	};
	rust::Box<rb::TreeHistory> foreign = rb::make_tree(rb::kLayout + 1, settings);
	EXPECT(message(foreign).find("of different builds") != std::string::npos);
	EXPECT(foreign->clear(5) == rb::Status::Broken);
	EXPECT(foreign->resolve({ 1, 0, {}, {} }).status == rb::Status::Broken);

	rust::Box<rb::TreeHistory> tree = rb::make_tree(rb::kLayout, settings);
	EXPECT(message(tree).empty());
	EXPECT(tree->resolve({ 10, 0, {}, {} }).status == rb::Status::Done);
	EXPECT(tree->resolve({ 10, 0, {}, {} }).status == rb::Status::Refused);
	EXPECT(message(tree) == "batch version 10 is not above 10, the newest version of the history");
	EXPECT(tree->resolve({ 11, 0, {}, {} }).status == rb::Status::Done);

	// Spans that do not tile the ranges are a broken invariant, and a panic inside.
	const std::vector<rb::TransactionView> transactions{ { 5, false, 7, 0, 0 } };
	EXPECT(tree->resolve({ 12, 0, { transactions.data(), transactions.size() }, {} }).status == rb::Status::Broken);
	EXPECT(message(tree).find("panic: ") == 0 && message(tree).find("must tile the ranges") != std::string::npos);
	EXPECT(tree->resolve({ 13, 0, {}, {} }).status == rb::Status::Broken);

	// A resolver whose history is broken ends its role, and says why.
	Set set;
	Input late;
	smallBatch(late, 0, "k");
	bool thrown = false;
	try {
		decide(set.set, late);
	} catch (const Error& error) {
		thrown = error.code == internal_error().code;
	}
	EXPECT(thrown == (settings.history() == rb::Choice::Tree));
	EXPECT(lastTraced("ResolverTreeFailed").severity == SevError);
	EXPECT(lastTraced("ResolverTreeFailed").get("Reason").find("batch version 0") == 0);
	// In shadow mode the original goes on alone.
	Input next;
	smallBatch(next, 10, "k");
	try {
		EXPECT(decide(set.set, next).committed.size() == 20);
		EXPECT(settings.history() == rb::Choice::Shadow);
	} catch (const Error&) {
		EXPECT(settings.history() == rb::Choice::Tree);
	}
	EXPECT(traced("ResolverTreeFailed") == 1);
}

} // namespace

int main(int argc, char** argv) {
	const std::string command = argc > 1 ? argv[1] : "";
	const std::map<std::string, void (*)()> commands{
		{ "lifetimes", lifetimes },   { "two-sets", twoSets },
		{ "fallback", fallback },     { "cutoff", cutoff },
		{ "difference", difference }, { "bugs", bugs },
		{ "entries", entries },       { "empty-ranges", emptyRanges },
		{ "beginning", beginning },   { "boundary", boundary },
		{ "overlapping", overlapping },
		{ "skiplisttest", skipListTest },
	};
	if (command == "replay") {
		replay(std::vector<const char*>(argv + 2, argv + argc));
	} else if (const auto found = commands.find(command); found != commands.end()) {
		found->second();
	} else {
		fprintf(stderr, "no such command: %s\n", command.c_str());
		return 2;
	}
	return failures ? 1 : 0;
}
