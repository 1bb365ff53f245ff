#pragma once
// The collectives of torch.distributed: which operators are one, how many bytes a call is about, and how many of them
// must cross the network.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "roofprof/work.h"

namespace roofprof {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  send,
  recv,
  barrier
};
inline constexpr std::array<std::string_view, 11> kCollectiveNames = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce",
    "gather",     "scatter",    "send",           "recv",       "barrier"};
constexpr std::string_view name_of(CollectiveKind collective) {
  return kCollectiveNames[static_cast<std::size_t>(collective)];
}

// Returns the kind of c10d's operators and of their functional forms; empty for any other operator.
std::optional<CollectiveKind> collective_of(std::string_view op);
// Returns whether the operator is a collective or waits for one: nothing is computed meanwhile.
bool is_communication(std::string_view op);

// Returns whether a kernel of that name communicates: one of NCCL's, RCCL's or of torch's symmetric memory.
bool is_kernel_of_collectives(std::string_view kernel);
// Returns what a kernel's name says of how it communicates: "RING LL", "NVLS SIMPLE", "SendRecv"; empty where it says
// nothing (RCCL's generic kernels).
std::string algorithm_of_kernel(std::string_view kernel);
// Returns the function that NCCL's kernel of that name is of: "AllReduce", "Generic"; empty for others.
std::string_view function_of_kernel(std::string_view kernel);

// Returns the size of such a call as nccl-tests defines it (doc/PERFORMANCE.md), of what its ranks hold together where
// each has a part: the buffer of an all_reduce, broadcast, reduce, send or recv; the gathered one of an all_gather or
// gather, that which is split of a reduce_scatter, scatter or all_to_all. `work`: of the operator on this rank.
std::int64_t message_bytes(CollectiveKind collective, const Work& work, std::int64_t ranks);

// Returns bus bandwidth / algorithm bandwidth: the share of the size that the busiest rank has to send or receive at
// the least (nccl-tests, doc/PERFORMANCE.md). 0 for a barrier and for one rank.
double bus_factor(CollectiveKind collective, std::int64_t ranks);

// Thakur, Rabenseifner and Gropp, "Optimization of CollectiveKind Communication Operations in MPICH" (2005): `tree` is
// their binomial tree, or recursive doubling or halving where each rank gets something; `direct`: each rank to each
// other.
enum class Algorithm : std::uint8_t { ring, tree, direct };
inline constexpr std::array<std::string_view, 3> kAlgorithmNames = {"ring", "tree", "direct"};

// Returns the bytes that the busiest rank sends, or receives where that is more, as a multiple of the size; empty where
// the algorithm does not do this collective.
std::optional<double> wire_factor(CollectiveKind collective, Algorithm algorithm, std::int64_t ranks);

}  // namespace roofprof
