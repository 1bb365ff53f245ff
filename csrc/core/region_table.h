#pragma once
// Regions of a profile by number: rows below what opened them, and paths of names.

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/run_record.h"

namespace roofprof {

// The longest name of a region, in bytes: a profile keeps the names, and repeats them in each path below.
inline constexpr std::size_t kLongestName = 1000;

// The region of what a block does between its steps.
inline constexpr std::string_view kBetweenSteps = "(between steps)";

// Returns the region that a range of torch's profiler opens (torch.profiler.record_function): its name, "(data
// loading)" for a DataLoader's. Empty for ranges that torch opens itself; a name that is longer than kLongestName is
// cut.
std::string_view region_of_range(std::string_view range);

// The regions of one session: each row, by (parent, name), and each path has the same id in all passes and threads.
class Regions {
 public:
  // The number of distinct regions that get rows, and of distinct paths; the work of further ones counts in the region
  // or module around them.
  static constexpr std::size_t kMost = 1000;

  // Ids begin at `first`, after those of the model's modules.
  explicit Regions(ModuleId first) : first_(first) {}

  // Returns the id of the region's row; empty where there are too many.
  std::optional<ModuleId> find_or_add(ModuleId parent, std::string_view name);
  // Returns the path of a region of that name inside of `around`. Returns `around` itself where it has that name or is
  // inside of one that has, and where there are too many.
  RegionId find_or_add_path(RegionId around, std::string_view name);
  // Returns whether a region of that name is open where that path is.
  bool is_open(RegionId path, std::string_view name) const;
  // Returns the regions by id.
  std::vector<Region> all() const;
  // Returns the paths by id, from 1 on, without calls.
  std::vector<RegionPath> all_paths() const;
  // Returns whether some regions got no row or no path, because there were too many.
  bool refused() const;

 private:
  using Key = std::pair<ModuleId, std::string>;
  ModuleId first_;
  mutable std::mutex mutex_;
  std::map<Key, ModuleId> ids_;
  std::vector<const Key*> regions_;  // by id
  std::map<std::pair<RegionId, std::string>, RegionId> path_ids_;
  std::vector<RegionPath> paths_;  // by id, from 1 on
  bool refused_ = false;
};

}  // namespace roofprof
