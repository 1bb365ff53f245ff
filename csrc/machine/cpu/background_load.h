#pragma once
// Measures how much of the processors that this process may run on other programs use.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "roofprof/note.h"

namespace roofprof {

// Watches from its construction on. Time that a hypervisor gave to other machines (steal) counts as others' use.
class BackgroundLoad {
 public:
  // The processor time of one process and of all processes on `cpus` processors, during `wall_seconds`.
  struct Use {
    double busy_seconds = 0;
    double own_seconds = 0;
    double wall_seconds = 0;
    std::size_t cpus = 1;
  };
  static double share_of_others(const Use& use);

  // Ranks that torchrun started on this machine belong to the program whose calls are timed; while roofs are measured
  // they count as any other load.
  enum class Ranks : std::uint8_t { are_others, are_our_own };
  explicit BackgroundLoad(Ranks ranks = Ranks::are_others);

  // The share of all allowed processors that others used so far, 0 to 1; empty where the system does not show it, or
  // after less than 0.2 s, as the system counts in ticks of 10 ms.
  std::optional<double> share() const;

  static bool is_busy(std::optional<double> share) { return share.value_or(0) > kBusy; }

  // Returns the note for a reader of times that were measured meanwhile, where that share is above kBusy. `meanwhile`:
  // "the calls were timed". Returns none where other work is expected, as during a test suite
  // (ROOFPROF_SHARED_MACHINE=1).
  static std::optional<Note> note(std::optional<double> share, const std::string& meanwhile);

  // Above this share, measured times depend more on the other load than on the machine.
  static constexpr double kBusy = 0.1;

 private:
  std::vector<int> cpus_;
  std::optional<double> busy_seconds_;
  bool with_ranks_;
  double own_seconds_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace roofprof
