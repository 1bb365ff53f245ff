#pragma once
// The collectives of a report: calls between the ranks of a program (torch.distributed's all_reduce and others).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "roofprof/dtype.h"
#include "roofprof/rows.h"

namespace roofprof {

// All calls of one collective with the same shapes in one module, phase and group. An empty optional was not measured.
// Calls, bytes and times of a merged report are sums over ranks.
struct Collective {
  std::string name;   // "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather",
                      // "scatter", "send", "recv", "barrier"
  std::string op;     // "c10d::allreduce_"
  std::string group;  // the process group's name
  std::string backend;
  std::int64_t ranks = 0;  // in the group; 0: not known
  std::int64_t hosts = 0;  // hosts that the ranks run on; 0: not known (only merged reports know)
  std::string module;      // path of the module that caused it
  Phase phase = Phase::forward;
  DType dtype = DType::other;
  std::string shapes;  // of its tensors, each as sizes: "1024x1024, 1024"
  std::int64_t calls = 0;
  std::int64_t timed_calls = 0;       // calls that the times below include
  std::optional<std::int64_t> bytes;  // of all calls, as nccl-tests defines a collective's size
  // The least that the busiest rank must send or receive in all calls: bytes x the bus factor of nccl-tests.
  std::optional<std::int64_t> wire_bytes;
  // The bytes that it sends or receives by algorithm; empty if the algorithm does not exist for this collective.
  std::optional<std::int64_t> ring_bytes;
  std::optional<std::int64_t> tree_bytes;
  std::optional<std::int64_t> direct_bytes;
  std::optional<std::int64_t> time_ns;         // from the calls to their ends
  std::optional<std::int64_t> wait_ns;         // the part of time_ns until the last rank called; merged reports only
  std::optional<std::int64_t> transfer_ns;     // the part after that: wait + transfer = time
  std::optional<std::int64_t> exposed_ns;      // the part of time_ns in which no op computed
  std::optional<std::string> algorithm;        // "RING LL", by the names of NCCL's kernels
  std::optional<double> algorithm_bandwidth;   // bytes / transfer, or / time where the wait is not known; bytes/s
  std::optional<double> bus_bandwidth;         // algorithm bandwidth x bus factor (nccl-tests)
  std::optional<std::int64_t> lower_bound_ns;  // by the network's roof
  std::optional<double> percent_of_roof;       // 100 x lower bound / time
  std::optional<std::int64_t> wasted_ns;       // time - lower bound
  Bound bound;

  [[nodiscard]] std::optional<std::int64_t> known_ranks() const {
    return ranks > 0 ? std::optional(ranks) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> known_hosts() const {
    return hosts > 0 ? std::optional(hosts) : std::nullopt;
  }
  [[nodiscard]] std::string dtype_name() const { return std::string(name_of(dtype)); }
  [[nodiscard]] std::string phase_name() const { return std::string(name_of(phase)); }
  bool operator==(const Collective&) const = default;
};

}  // namespace roofprof
