#include "core/collective_kinds.h"

#include <algorithm>
#include <bit>

namespace roofprof {

namespace {

struct CollectiveOp {
  std::string_view op;
  CollectiveKind collective;
};

constexpr CollectiveOp kCollectiveOps[] = {
    {"c10d::allreduce_", CollectiveKind::all_reduce},
    {"c10d::allreduce_coalesced_", CollectiveKind::all_reduce},
    {"c10d::reduce_", CollectiveKind::reduce},
    {"c10d::broadcast_", CollectiveKind::broadcast},
    {"c10d::send", CollectiveKind::send},
    {"c10d::recv_", CollectiveKind::recv},
    {"c10d::recv_any_source_", CollectiveKind::recv},
    {"c10d::allgather_", CollectiveKind::all_gather},
    {"c10d::allgather_coalesced_", CollectiveKind::all_gather},
    {"c10d::allgather_into_tensor_coalesced_", CollectiveKind::all_gather},
    {"c10d::_allgather_base_", CollectiveKind::all_gather},
    {"c10d::gather_", CollectiveKind::gather},
    {"c10d::gather_into_tensor_", CollectiveKind::gather},
    {"c10d::scatter_", CollectiveKind::scatter},
    {"c10d::reduce_scatter_", CollectiveKind::reduce_scatter},
    {"c10d::reduce_scatter_tensor_coalesced_", CollectiveKind::reduce_scatter},
    {"c10d::_reduce_scatter_base_", CollectiveKind::reduce_scatter},
    {"c10d::alltoall_", CollectiveKind::all_to_all},
    {"c10d::alltoall_base_", CollectiveKind::all_to_all},
    {"c10d::barrier", CollectiveKind::barrier},
    {"c10d::monitored_barrier_", CollectiveKind::barrier},
    {"_c10d_functional::all_reduce", CollectiveKind::all_reduce},
    {"_c10d_functional::all_reduce_", CollectiveKind::all_reduce},
    {"_c10d_functional::all_reduce_coalesced", CollectiveKind::all_reduce},
    {"_c10d_functional::all_reduce_coalesced_", CollectiveKind::all_reduce},
    {"_c10d_functional::all_gather_into_tensor", CollectiveKind::all_gather},
    {"_c10d_functional::all_gather_into_tensor_coalesced", CollectiveKind::all_gather},
    {"_c10d_functional::all_gather_into_tensor_out", CollectiveKind::all_gather},
    {"_c10d_functional::reduce_scatter_tensor", CollectiveKind::reduce_scatter},
    {"_c10d_functional::reduce_scatter_tensor_coalesced", CollectiveKind::reduce_scatter},
    {"_c10d_functional::reduce_scatter_tensor_out", CollectiveKind::reduce_scatter},
    {"_c10d_functional::all_to_all_single", CollectiveKind::all_to_all},
    {"_c10d_functional::broadcast", CollectiveKind::broadcast},
    {"_c10d_functional::broadcast_", CollectiveKind::broadcast},
    {"_c10d_functional::isend", CollectiveKind::send},
    {"_c10d_functional::irecv", CollectiveKind::recv},
    {"_c10d_functional_autograd::all_gather_into_tensor", CollectiveKind::all_gather},
    {"_c10d_functional_autograd::reduce_scatter_tensor", CollectiveKind::reduce_scatter},
    {"_c10d_functional_autograd::all_to_all_single", CollectiveKind::all_to_all},
    {"_dtensor::shard_dim_alltoall", CollectiveKind::all_to_all},
    {"symm_mem::multimem_all_reduce_", CollectiveKind::all_reduce},
    {"symm_mem::two_shot_all_reduce_", CollectiveKind::all_reduce},
    {"symm_mem::one_shot_all_reduce", CollectiveKind::all_reduce},
    {"symm_mem::multimem_one_shot_all_reduce", CollectiveKind::all_reduce},
};

double steps_of_tree(std::int64_t ranks) {
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
}

}  // namespace

std::optional<CollectiveKind> collective_of(std::string_view op) {
  const auto* found = std::ranges::find(kCollectiveOps, op, &CollectiveOp::op);
  return found == std::end(kCollectiveOps) ? std::nullopt : std::optional(found->collective);
}

bool is_communication(std::string_view op) {
  constexpr std::array<std::string_view, 5> kFamilies = {
      "c10d::", "_c10d_functional::", "_c10d_functional_autograd::", "_dtensor::", "nccl:"};
  return std::ranges::any_of(kFamilies, [&](std::string_view family) { return op.starts_with(family); }) ||
         collective_of(op);
}

// NCCL's src/device/generate.py makes the names: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", those before NCCL 2.19
// "ncclKernel_AllReduce_RING_LL_Sum_float(...)".
bool is_kernel_of_collectives(std::string_view kernel) {
  constexpr std::array<std::string_view, 4> kBegins = {"ncclDevKernel", "ncclKernel", "ncclSymk", "rccl"};
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return kernel.starts_with(begin); }) ||
         kernel.find("_all_reduce_kernel<") != kernel.npos;  // of torch's symmetric memory
}

namespace {

// Calls use(word) for the parts between "_" of a kernel's name, without its arguments.
template <class Use>
void for_each_word(std::string_view kernel, Use use) {
  kernel = kernel.substr(0, kernel.find_first_of("(<"));
  while (!kernel.empty()) {
    const auto end = std::min(kernel.find('_'), kernel.size());
    use(kernel.substr(0, end));
    kernel.remove_prefix(std::min(end + 1, kernel.size()));
  }
}

}  // namespace

std::string_view function_of_kernel(std::string_view kernel) {
  std::string_view function;
  if (!kernel.starts_with("nccl") && !kernel.starts_with("rccl")) return function;
  std::size_t position = 0;
  for_each_word(kernel, [&](std::string_view word) {
    if (position++ == 1) function = word;
  });
  return function;
}

std::string algorithm_of_kernel(std::string_view kernel) {
  // Sends and receives have no algorithm, though older names have one of NCCL's.
  const auto function = function_of_kernel(kernel);
  if (function.empty() || function == "SendRecv") return std::string(function);
  constexpr std::array<std::string_view, 10> kWords = {"TREE", "RING", "COLLNET", "DIRECT", "CHAIN",
                                                       "NVLS", "PAT",  "LL",      "LL128",  "SIMPLE"};
  std::string algorithm;
  for_each_word(kernel, [&](std::string_view word) {
    if (std::ranges::find(kWords, word) == kWords.end()) return;
    if (!algorithm.empty()) algorithm += ' ';
    algorithm += word;
  });
  return algorithm;
}

std::int64_t message_bytes(CollectiveKind collective, const Work& work, std::int64_t ranks) {
  switch (collective) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::send:
      return work.read_bytes;
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
    case CollectiveKind::recv:
      return work.write_bytes;
    case CollectiveKind::gather:
      return saturating_multiply(work.read_bytes, ranks);
    case CollectiveKind::scatter:
      return saturating_multiply(work.write_bytes, ranks);
    case CollectiveKind::barrier:
      return 0;
  }
  return 0;
}

double bus_factor(CollectiveKind collective, std::int64_t ranks) {
  if (ranks < 2) return 0;
  const auto n = static_cast<double>(ranks);
  switch (collective) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send:
    case CollectiveKind::recv:
      return 1;
    case CollectiveKind::barrier:
      return 0;
  }
  return 0;
}

std::optional<double> wire_factor(CollectiveKind collective, Algorithm algorithm, std::int64_t ranks) {
  const double least = bus_factor(collective, ranks);
  if (ranks < 2) return least;
  switch (collective) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      if (algorithm == Algorithm::tree) return steps_of_tree(ranks);
      return algorithm == Algorithm::ring ? least : static_cast<double>(ranks - 1);
    case CollectiveKind::all_to_all:
      return algorithm == Algorithm::direct ? std::optional(least) : std::nullopt;
    default:
      return least;
  }
}

}  // namespace roofprof
