#pragma once
// What ops, modules, kernels and devices did on all ranks: one bucket for each key, however many ranks had it.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/ranks/known_sum.h"
#include "analysis/ranks/merged_tree.h"
#include "core/profile_data.h"

namespace roofprof {

class MergedSums {
 public:
  // By the index of each of its ops the merged one.
  std::vector<std::int64_t> add(const ProfileData& data, const MergedIndices& indices);
  // Into a profile that has the merged modules and regions.
  void write(ProfileData& data) const;

 private:
  struct MergedTime {
    ModuleTime time;  // without the figures of runs
    KnownSum self;
    KnownSum host_self;
  };

  std::vector<std::int64_t> add_ops(const ProfileData& data, const MergedIndices& indices);
  void add_times(const ProfileData& data, const MergedIndices& indices);
  void add_kernels(const ProfileData& data, const MergedIndices& indices, const std::vector<std::int64_t>& buckets);
  void add_devices(const ProfileData& data, const MergedIndices& indices);
  void add_tokens(const ProfileData& data);

  using Places = std::unordered_map<std::string, std::size_t>;

  Places op_places_;
  std::vector<OpBucket> ops_;
  std::vector<KnownSum> op_times_;
  Places time_places_;
  std::vector<MergedTime> times_;
  Places kernel_places_;
  std::vector<KernelBucket> kernels_;
  std::vector<std::int64_t> longest_;     // total of the rank whose median a kernel has
  std::vector<DeviceTime> device_times_;  // by module
  Places counter_places_;
  std::vector<ModuleCounters> counters_;
  Places token_places_;
  std::vector<TokenCalls> tokens_;
};

}  // namespace roofprof
