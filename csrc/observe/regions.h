#pragma once
// Regions, which the user's code opens while it runs. Each is a row below the module or region that runs there, and all
// that runs inside knows its path, the names of the regions around it.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/region_table.h"

namespace at {
struct RecordFunction;
}

namespace roofprof::observe {

// Throws std::invalid_argument for a name that is longer than kLongestName.
void check_name(std::string_view name);

class Session;
struct RegionInfo;

// Hands one thread's open regions over to the threads that torch starts work on from there: those of autograd's engine
// and of TorchScript's forks.
class RegionHandover {
 public:
  void begin(const std::shared_ptr<Session>& session, std::uint64_t pass, RegionId region);
  // Ends the innermost region.
  void end();
  void end_all() {
    while (!open_.empty()) end();
  }

 private:
  std::vector<std::shared_ptr<RegionInfo>> open_;
};

// Returns the region of that session's pass that was open where the calling thread's work was started; kNoRegion: none
// is known.
RegionId region_handed_over(const Session& session);

// Opens a region on the calling thread where a profile observes it; `token` identifies it to close_region().
void open_region(std::string_view name, const void* token);
void close_region(const void* token);

// Makes a region of the call of `module` that has just begun on this thread, in that session. The whole call belongs to
// the region, and the region adds no row. Returns false where that call is not the innermost one here.
bool name_call(const Session& session, const void* module, std::string_view name);
// Returns whether a region of that name is open on this thread.
bool is_region_open(std::string_view name);

// Opens a region for a range of torch's (torch.profiler.record_function, RECORD_USER_SCOPE); the range's address is the
// token. Ranges that torch opens itself make no regions, except a DataLoader's: it makes the region "(data loading)".
void open_region(const at::RecordFunction& range);

}  // namespace roofprof::observe
