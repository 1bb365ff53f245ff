#pragma once
// Matches what a graph's replay ran with what was launched while the graph was captured.

#include <cstdint>
#include <vector>

namespace roofprof::kineto {

// Kernels by the numbers of their names, from 0 on, and what has no name.
using Sequence = std::vector<std::int32_t>;
inline constexpr std::int32_t kCopied = -1;
inline constexpr std::int32_t kFilled = -2;
inline constexpr std::int32_t kUnnamed = -3;  // a kernel whose launch does not say its name: CUDA's do not

// Returns for each item of `a` the item of `b` that it is in their longest common subsequence (Myers 1986, "An O(ND)
// difference algorithm"), or kNone. Sequences that differ in thousands of items have only their ends in common.
std::vector<std::int32_t> in_common(const Sequence& a, const Sequence& b);

// Gives the kernels of a replay that ran in another order, as branches of a graph do, the launches of their name that
// are left, where both sides have the same number of them.
void match_by_name(const Sequence& records, const Sequence& launches, std::vector<std::int32_t>& launch_of);

// Matches kernels, copies and fills, each by its order: launches do not say names. Leaves out a kind of which the two
// sides have different numbers; returns whether kernels were matched.
bool match_by_order(const Sequence& records, const Sequence& launches, std::vector<std::int32_t>& launch_of);

}  // namespace roofprof::kineto
