#pragma once
// The modules and regions of all ranks, found by their paths: what one rank calls module 7 may be module 9 elsewhere.

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/ranks/known_sum.h"
#include "core/profile_data.h"

namespace roofprof {

// Of one rank's profile: by its own index the index in the merged one.
struct MergedIndices {
  std::vector<ModuleId> modules;
  std::vector<RegionId> regions;  // [0] is kNoRegion

  ModuleId module(ModuleId id) const { return modules[index_of(id)]; }
  RegionId region(RegionId id) const { return regions[static_cast<std::size_t>(id)]; }
  Owner owner(const Owner& own) const { return {module(own.module), own.phase, region(own.region)}; }
};

class MergedTree {
 public:
  // New modules follow their parents, new regions the ones around them.
  MergedIndices add(const ProfileData& data);

  // Parameters and buffers that several ranks have at one path are the same, or copies of each other: they count once.
  // Peaks and kept bytes are the most of any rank.
  std::vector<Module> modules() const;
  std::vector<RegionPath> regions() const;

 private:
  // What a module has beside those below it, the most of any rank. Negative where modules below it share parameters.
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

  std::vector<Module> modules_;
  std::vector<Own> own_;
  std::unordered_map<std::string, ModuleId> by_path_;
  std::vector<RegionPath> regions_;
  std::vector<KnownSum> region_walls_;
  std::unordered_map<std::string, RegionId> region_by_path_;
  std::vector<std::string> region_paths_;
};

}  // namespace roofprof
