#pragma once
// Regions: rows that the user's code opens while it runs, below the module or region that runs there.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "values/observed.h"

namespace at {
struct RecordFunction;
}

namespace roofprof::observe {

// The regions of one session: each (parent, name) has the same id in all of its passes and threads.
class Regions {
 public:
  // Distinct regions that get rows; the work of further ones is counted in their parents.
  static constexpr std::size_t kMost = 1000;

  // Ids begin at `first`, after those of the model's modules.
  explicit Regions(ModuleId first) : first_(first) {}

  // Empty where there are too many.
  std::optional<ModuleId> find_or_add(ModuleId parent, std::string_view name);
  // By id.
  std::vector<Region> all() const;
  // There were more than get rows.
  bool refused() const;

 private:
  using Key = std::pair<ModuleId, std::string>;
  ModuleId first_;
  mutable std::mutex mutex_;
  std::map<Key, ModuleId> ids_;
  std::vector<const Key*> regions_;  // by id
  bool refused_ = false;
};

// Opens a region on the calling thread where a profile observes it; `token` identifies it to close_region().
void open_region(std::string_view name, const void* token);
void close_region(const void* token);

// As open_region, for a range of torch's (torch.profiler.record_function, RECORD_USER_SCOPE); its address is the token.
// Ranges that torch opens itself are no regions.
void open_region(const at::RecordFunction& range);

}  // namespace roofprof::observe
