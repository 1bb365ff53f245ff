#pragma once
// Regions, which the user's code opens while it runs. Each is a row below the module or region that runs there, and all
// that runs inside knows its path, the names of the regions around it.

#include <cstdint>
#include <map>
#include <memory>
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

// The regions of one session: each row, by (parent, name), and each path has the same id in all passes and threads.
class Regions {
 public:
  // Distinct regions that get rows, and distinct paths; the work of further ones is counted in what is around them.
  static constexpr std::size_t kMost = 1000;

  // Ids begin at `first`, after those of the model's modules.
  explicit Regions(ModuleId first) : first_(first) {}

  // Empty where there are too many.
  std::optional<ModuleId> find_or_add(ModuleId parent, std::string_view name);
  // The path of a region of that name inside of that other; the other itself where it has that name, or is inside of
  // one that has, and where there are too many.
  RegionId find_or_add_path(RegionId around, std::string_view name);
  // Whether a region of that name is open where that path is.
  bool is_open(RegionId path, std::string_view name) const;
  // By id.
  std::vector<Region> all() const;
  // By id, from 1 on.
  std::vector<RegionInside> all_paths() const;
  // There were more than get rows, or paths.
  bool refused() const;

 private:
  using Key = std::pair<ModuleId, std::string>;
  ModuleId first_;
  mutable std::mutex mutex_;
  std::map<Key, ModuleId> ids_;
  std::vector<const Key*> regions_;  // by id
  std::map<std::pair<RegionId, std::string>, RegionId> path_ids_;
  std::vector<RegionInside> paths_;  // by id, from 1 on
  bool refused_ = false;
};

// What a mark may be called, in bytes: a profile keeps the names, and repeats them in each path below.
constexpr std::size_t kLongestName = 1000;
// Throws std::invalid_argument for a longer one.
void check_name(std::string_view name);

class Session;
struct RegionInfo;

// One thread's open regions, handed over to the threads that torch starts work on from there: those of autograd's
// engine and of TorchScript's forks.
class RegionHandover {
 public:
  void begin(const std::shared_ptr<Session>& session, std::uint64_t pass, std::uint16_t region);
  // Of the innermost one.
  void end();
  void end_all() {
    while (!open_.empty()) end();
  }

 private:
  std::vector<std::shared_ptr<RegionInfo>> open_;
};

// The region of that session's pass that was open where the calling thread's work was started; kNoRegion: none is
// known.
std::uint16_t region_handed_over(const Session& session);

// Opens a region on the calling thread where a profile observes it; `token` identifies it to close_region().
void open_region(std::string_view name, const void* token);
void close_region(const void* token);

// Makes a region of the call of `module` that has just begun on this thread, in that session: all of the call belongs
// to it, and it has no row of its own. False where that is not the innermost call here.
bool name_call(const Session& session, const void* module, std::string_view name);
// Whether a region of that name is open on this thread.
bool is_region_open(std::string_view name);

// As open_region, for a range of torch's (torch.profiler.record_function, RECORD_USER_SCOPE); its address is the token.
// Ranges that torch opens itself are no regions, but for a DataLoader's: that is the region "(data loading)".
void open_region(const at::RecordFunction& range);

}  // namespace roofprof::observe
