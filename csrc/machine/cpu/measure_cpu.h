#pragma once
// Measuring the roofs of the CPU: measure_ceilings("cpu").

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/common/measurement.h"
#include "machine/cpu/background_load.h"

namespace roofprof {

// A measurement repeated until enough of its rounds were quiet.

inline constexpr std::size_t kQuietRounds = 5;
inline constexpr std::size_t kFewestQuietRounds = 2;

template <class Round>
struct Rounds {
  std::vector<Round> kept;  // the quiet ones; all of them where too few were quiet
  double busy_share = 0;    // the largest share of the processors that others used in the rounds, in that case; else 0
};

// Repeats `measure`, which returns a round and the share of the processors that others used meanwhile. It gets the
// number of quiet rounds and of all rounds so far. Busy rounds are repeated while `has_time`.
template <class Round>
Rounds<Round> quiet_rounds(const std::function<std::pair<Round, double>(std::size_t quiet, std::size_t all)>& measure,
                           const std::function<bool()>& has_time) {
  Rounds<Round> rounds;
  std::vector<double> shares;
  const auto is_busy = [](double share) { return share > BackgroundLoad::kBusy; };
  const auto quiet = [&] { return shares.size() - static_cast<std::size_t>(std::ranges::count_if(shares, is_busy)); };
  // Two rounds are made even without time, for their spread, unless the first has shown that they will not be kept.
  const auto needs_another = [&] { return shares.size() < kFewestQuietRounds && quiet() == shares.size(); };
  while (quiet() < kQuietRounds && (needs_another() || has_time())) {
    auto [round, share] = measure(quiet(), shares.size());
    rounds.kept.push_back(std::move(round));
    shares.push_back(share);
  }
  if (quiet() < kFewestQuietRounds) {
    rounds.busy_share = std::ranges::max(shares);
    return rounds;
  }
  for (std::size_t i = shares.size(); i-- > 0;) {
    if (is_busy(shares[i])) rounds.kept.erase(rounds.kept.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return rounds;
}

// Call it under DispatchDefaults.
MeasuredCeilings measure_cpu(const std::function<void(std::string_view)>& progress);

}  // namespace roofprof
