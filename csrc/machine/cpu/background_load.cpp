#include "machine/cpu/background_load.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "machine/cpu/host.h"

namespace roofprof {
namespace {

double own_seconds(bool with_ranks) {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  const double own = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  return with_ranks ? own + seconds_of_siblings() : own;
}

bool has_other_ranks() {
  const char* set = std::getenv("LOCAL_WORLD_SIZE");
  return set != nullptr && number_at_start(set).value_or(1) > 1;
}

bool on_shared_machine() {
  const char* set = std::getenv("ROOFPROF_SHARED_MACHINE");
  return set != nullptr && std::string_view(set) == "1";
}

}  // namespace

BackgroundLoad::BackgroundLoad(Ranks ranks)
    : cpus_(allowed_cpus()),
      busy_seconds_(busy_seconds(cpus_)),
      with_ranks_(ranks == Ranks::are_our_own && has_other_ranks()),
      own_seconds_(own_seconds(with_ranks_)),
      begin_(std::chrono::steady_clock::now()) {}

std::optional<double> BackgroundLoad::share() const {
  constexpr std::chrono::milliseconds kShortest{200};
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin_;
  if (!busy_seconds_ || wall < kShortest) return std::nullopt;
  const auto busy_now = busy_seconds(cpus_);
  if (!busy_now) return std::nullopt;
  return share_of_others(
      {*busy_now - *busy_seconds_, own_seconds(with_ranks_) - own_seconds_, wall.count(), cpus_.size()});
}

double BackgroundLoad::share_of_others(const Use& use) {
  const double others = use.busy_seconds - use.own_seconds;
  return std::clamp(others / use.wall_seconds / static_cast<double>(use.cpus), 0.0, 1.0);
}

std::optional<Note> BackgroundLoad::note(std::optional<double> share, const std::string& meanwhile) {
  if (!is_busy(share) || on_shared_machine()) return std::nullopt;
  return make_note("machine-busy", "other processes used " + percent(*share) + " of the processors while " + meanwhile +
                                       ": times may be too long; measure again when the machine is quiet");
}

}  // namespace roofprof
