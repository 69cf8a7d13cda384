// The layout number, as this side sees it. The other half, and what it is for: src/layout.rs, in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "bridge.rs.h"

namespace resolver_bridge {

constexpr uint64_t kRevision = 1;

constexpr uint64_t layoutNumber(std::initializer_list<uint64_t> facts) {
	uint64_t hash = 0xcbf29ce484222325;
	for (uint64_t fact : facts) {
		hash = (hash ^ fact) * 0x00000100000001b3;
	}
	return hash;
}

constexpr uint64_t kLayout = layoutNumber({ kRevision,
                                            sizeof(RangeView),
                                            offsetof(RangeView, begin),
                                            offsetof(RangeView, begin_length),
                                            offsetof(RangeView, end),
                                            offsetof(RangeView, end_length),
                                            sizeof(TransactionView),
                                            offsetof(TransactionView, read_version),
                                            offsetof(TransactionView, report),
                                            offsetof(TransactionView, first),
                                            offsetof(TransactionView, reads),
                                            offsetof(TransactionView, writes),
                                            sizeof(BatchView),
                                            offsetof(BatchView, version),
                                            offsetof(BatchView, oldest),
                                            offsetof(BatchView, transactions),
                                            offsetof(BatchView, ranges),
                                            sizeof(ReportedRead),
                                            offsetof(ReportedRead, transaction),
                                            offsetof(ReportedRead, read),
                                            sizeof(Outcome),
                                            offsetof(Outcome, any_too_old),
                                            offsetof(Outcome, verdicts),
                                            offsetof(Outcome, reported),
                                            sizeof(Decided),
                                            offsetof(Decided, verdicts),
                                            offsetof(Decided, reported),
                                            offsetof(Decided, compare),
                                            sizeof(Comparison),
                                            offsetof(Comparison, differences),
                                            sizeof(Figures),
                                            offsetof(Figures, differences) });

} // namespace resolver_bridge
