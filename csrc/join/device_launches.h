#pragma once
// A trace's records in launch order, each with what it belongs to.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"
#include "core/median.h"
#include "core/pass.h"
#include "core/profile.h"
#include "core/run_record.h"

namespace roofprof {

// Finds the module and op of a profile that a launch belongs to.

struct LaunchOwner {
  Owner owner = {kOutside};
  std::string op;             // empty: the module itself, no op was seen around the launch
  std::int64_t bucket = -1;   // index into Counts::ops; -1: none, or more than one
  std::int64_t compiled = 0;  // CompiledKernel::id; 0: none is known
};

// Returns the owners by LaunchId.
std::vector<LaunchOwner> launch_owners(const std::vector<LaunchKey>& launches, const std::vector<Pass::Op>& ops);

// The op of kernels that no op launched.
inline constexpr std::string_view kNoOperator = "(no operator)";

// Adds an op without a cost for kernels that no op that counts launched, and gives it to their owners: what they
// computed is not known, so their rows must not look complete. Such an op has the name of the op around the launches,
// which only calls others or has others inside that count. Kernels of a module of which the traced pass did not run all
// that `counting` has are left alone, since they may be that work (TorchScript's executor fuses ops), and so are those
// of a module that is listed as unobserved. Does nothing where no device was traced.
void add_own_kernels(const std::vector<LaunchKey>& launches, const Pass& counting, const Pass& traced,
                     std::vector<LaunchOwner>& owners, std::vector<Pass::Op>& ops);

struct Launch {
  const KernelRecord* record;
  const LaunchOwner* owner;
  bool attributed;  // false: launched outside of every scope, or in one that the run does not know

  std::int64_t duration_ns() const { return record->end_ns - record->start_ns; }
};

struct Launches {
  const DeviceTrace* trace = nullptr;
  std::vector<Launch>
      in_order;  // by correlation, which begins again after 2^32; nodes of one graph by node, then by start
  std::int64_t backwards = 0;  // records that end before they start: left out

  // Records that are not in here because their start or end is not known.
  std::int64_t incomplete() const { return trace->incomplete + backwards; }
};

// Returns the trace's records in that order, without those that end before they start.
std::vector<const KernelRecord*> in_launch_order(const DeviceTrace& trace);

// Returns whether two runs launched the same there: a kernel of the same name with the same grid and blocks, on its own
// or from a graph; a copy or fill of as many bytes between the same kinds of memory.
bool same_launch(const KernelRecord& a, const DeviceTrace& trace_of_a, const KernelRecord& b,
                 const DeviceTrace& trace_of_b);

// Throws std::invalid_argument where an owner names a module or op that the profile has not.
void check_owners(const std::vector<LaunchOwner>& owners, std::size_t modules, std::size_t ops);

// Refers to both. Throws std::invalid_argument where a kernel's record has a name that the trace has not.
Launches launches_of(const DeviceTrace& trace, const std::vector<LaunchOwner>& owners);

// Sums launches into one bucket for each kernel (copy, fill) and owner, with statistics over the launches.

struct KernelBuckets {
  std::vector<KernelBucket> buckets;   // in order of their first launch
  std::vector<std::size_t> of_launch;  // the bucket of each launch
};

// Fills in the least, most, median and sample standard deviation.
template <class Bucket>
void add_spread(const std::vector<std::int64_t>& all, Bucket& bucket) {
  const auto [least, most] = std::ranges::minmax(all);
  bucket.min_ns = least;
  bucket.max_ns = most;
  bucket.median_ns = std::llround(median(all));
  if (all.size() < 2) return;
  double mean = 0;
  for (const auto ns : all) mean += static_cast<double>(ns) / static_cast<double>(all.size());
  double squares = 0;
  for (const auto ns : all) squares += (static_cast<double>(ns) - mean) * (static_cast<double>(ns) - mean);
  bucket.stddev_ns = std::sqrt(squares / static_cast<double>(all.size() - 1));
}

// Fills in the sum of `durations` and their number, and the spread of `all`, which has those of other runs as well.
template <class Bucket>
void summarize(const std::vector<std::int64_t>& durations, const std::vector<std::int64_t>& all, Bucket& bucket) {
  bucket.instances = std::ssize(durations);
  for (const auto ns : durations) bucket.total_ns = saturating_add(bucket.total_ns, ns);
  add_spread(all, bucket);
}

// Sum, least, most, median and sample standard deviation are exact: they come from all durations.
KernelBuckets kernel_buckets(const Launches& launches);

// Returns the launch's name. The names of copies and fills are in brackets, as in nsys: "[memcpy pinned to device]".
std::string name_of_launch(const KernelRecord& record, const std::vector<std::string>& names);

// Copied between host and device, in either direction.
bool crosses_host_link(const KernelBucket& kernel);

}  // namespace roofprof
