#pragma once
// The ranks of a program that ran in several processes (torchrun), as a merged report lists them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace roofprof {

class Report;

// One rank, by its own report. Times are nanoseconds of the run that its rows come from; an empty optional was not
// measured.
struct Rank {
  std::int64_t rank = 0;
  std::string host;    // empty: not known
  std::string device;  // "cpu", "cuda:3"
  std::string model;   // its type
  bool partial = false;
  std::int64_t steps = 0;                        // of a block; 0: not marked
  std::optional<std::int64_t> wall_ns;           // the whole run or block
  std::optional<std::int64_t> step_ns;           // the median step
  std::optional<double> step_spread;             // (max - min) / median of its steps
  std::optional<std::int64_t> time_ns;           // of its rows together
  std::optional<std::int64_t> compute_ns;        // inside ops other than collectives
  std::optional<std::int64_t> communication_ns;  // while any collective was under way
  std::optional<std::int64_t> exposed_ns;        // the part of it in which no op computed
  std::optional<std::int64_t> waiting_ns;        // in collectives, until the last rank called them
  std::optional<std::int64_t> idle_ns;           // of the wall time, neither computing nor exposed communication
  std::optional<std::int64_t> lower_bound_ns;
  std::optional<double> percent_of_roof;  // 0-100
  std::optional<std::int64_t> peak_memory;
  std::int64_t macs = 0;
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
  bool incomplete = false;  // an op without a known cost ran: its work is a lower limit

  [[nodiscard]] std::optional<std::int64_t> known_steps() const {
    return steps > 0 ? std::optional(steps) : std::nullopt;
  }
  bool operator==(const Rank&) const = default;
};

// Merges the reports of several ranks, each with its rank in the environment ("rank", as torchrun sets it): work and
// times are sums over ranks, `ranks()` lists them, and rows have the least, the median and the longest time of a rank.
// Throws InvalidArgument if a rank comes twice or reports are of different kinds; RuntimeError, naming the
// file, if a file is not a report.
[[nodiscard]] Report merge_reports(const std::vector<std::string>& paths);

}  // namespace roofprof
