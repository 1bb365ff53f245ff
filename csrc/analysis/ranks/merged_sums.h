#pragma once
// Merges the profiles of several ranks: one tree for the modules and regions of all, and sums over ranks.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/profile.h"
#include "roofprof/work.h"

namespace roofprof {

// A sum that is known if each of its parts is.
class KnownSum {
 public:
  void add(const std::optional<std::int64_t>& part) {
    known_ = known_ && part.has_value();
    sum_ = saturating_add(sum_, part.value_or(0));
    has_parts_ = true;
  }
  std::optional<std::int64_t> value() const { return known_ && has_parts_ ? std::optional(sum_) : std::nullopt; }

 private:
  std::int64_t sum_ = 0;
  bool known_ = true;
  bool has_parts_ = false;
};

inline std::optional<std::int64_t> value_of_run(const std::vector<std::int64_t>& by_run, std::int64_t run) {
  if (run < 0 || static_cast<std::size_t>(run) >= by_run.size()) return std::nullopt;
  return by_run[static_cast<std::size_t>(run)];
}

// ---- The modules and regions of all ranks, found by their paths: what one rank calls module 7 may be module 9
// elsewhere.

// Maps the indices of one rank's profile to those of the merged one.
struct MergedIndices {
  std::vector<ModuleId> modules;
  std::vector<RegionId> regions;  // [0] is kNoRegion

  ModuleId module(ModuleId id) const { return modules[index_of(id)]; }
  RegionId region(RegionId id) const { return regions[static_cast<std::size_t>(id)]; }
  Owner owner(const Owner& own) const { return {module(own.module), own.phase, region(own.region)}; }
};

class MergedTree {
 public:
  // Adds a rank's modules and regions: new modules follow their parents, new regions the ones around them.
  MergedIndices add(const Profile& data);

  // Parameters and buffers that several ranks have at one path are the same, or copies of each other: they count once.
  // Peaks and kept bytes are the most of any rank.
  Tree tree() const;

 private:
  // The sizes that a module has in addition to the modules below it: the most of any rank. They are negative if modules
  // below it share parameters.
  struct Own {
    std::int64_t params = 0;
    std::int64_t trainable_params = 0;
    std::int64_t param_bytes = 0;
    std::int64_t buffer_bytes = 0;
  };
  static constexpr std::array kSizes = {
      std::pair(&Module::params, &Own::params), std::pair(&Module::trainable_params, &Own::trainable_params),
      std::pair(&Module::param_bytes, &Own::param_bytes), std::pair(&Module::buffer_bytes, &Own::buffer_bytes)};

  void add_module(const Module& module, const Own& own, MergedIndices& indices);
  void add_region(const RegionPath& region, std::int64_t chosen_run, MergedIndices& indices);
  std::vector<Module> modules() const;
  std::vector<RegionPath> regions() const;

  std::vector<Module> modules_;
  std::vector<Own> own_;
  std::unordered_map<std::string, ModuleId> by_path_;
  std::vector<RegionPath> regions_;
  std::vector<KnownSum> region_walls_;
  std::unordered_map<std::string, RegionId> region_by_path_;
  std::vector<std::string> region_paths_;
};

// ---- What ops, modules, kernels and devices did on all ranks: one bucket for each key, however many ranks had it.

class MergedSums {
 public:
  // Adds a rank's sums. Returns the merged index of each of its ops.
  std::vector<std::int64_t> add(const Profile& data, const MergedIndices& indices);
  // Return the merged parts. Notes and collectives are merged elsewhere.
  Counts counts() const;
  Times times() const;
  DeviceWork device() const;
  const std::vector<TokenCalls>& token_calls() const { return tokens_; }

 private:
  struct MergedTime {
    ModuleTime time;  // without the figures of runs
    KnownSum self;
    KnownSum host_self;
  };

  std::vector<std::int64_t> add_counts(const Counts& counts, const MergedIndices& indices);
  void add_times(const Times& times, std::int64_t chosen_run, const MergedIndices& indices);
  // Returns the merged kernel of each of the rank's that has an id, by that.
  std::unordered_map<std::int64_t, std::int64_t> add_compiled_kernels(const std::vector<CompiledKernel>& kernels,
                                                                      const MergedIndices& indices);
  // `compiled`: what that returned. `buckets`: the merged index of each of the rank's ops.
  void add_kernels(const std::vector<KernelBucket>& kernels,
                   const std::unordered_map<std::int64_t, std::int64_t>& compiled, const MergedIndices& indices,
                   const std::vector<std::int64_t>& buckets);
  void add_device(const DeviceWork& device, const MergedIndices& indices);
  void add_tokens(const std::vector<TokenCalls>& tokens);

  using Places = std::unordered_map<std::string, std::size_t>;

  bool is_first_ = true;    // what comes next
  bool peak_known_ = true;  // of all ranks
  Counts counts_;           // the ops without times; the peak is the highest that is known
  Places op_places_;
  std::vector<KnownSum> op_times_;
  Places time_places_;
  std::vector<MergedTime> times_;
  Places kernel_places_;
  DeviceWork device_;                  // what is not summed is the first one's
  std::vector<std::int64_t> longest_;  // total of the rank whose median a kernel has
  Places compiled_places_;
  std::vector<CompiledKernel> compiled_kernels_;
  std::vector<std::int64_t> longest_compiled_;
  Places counter_places_;
  Places token_places_;
  std::vector<TokenCalls> tokens_;
};

}  // namespace roofprof
