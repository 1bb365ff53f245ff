#include "machine/cpu/measure_cpu.h"

#include <gtest/gtest.h>

namespace roofprof {
namespace {

// Rounds with these shares of others, the last one again and again; there is time for so many.
Rounds<std::size_t> rounds_of(const std::vector<double>& shares, std::size_t time_for) {
  std::size_t made = 0;
  return quiet_rounds<std::size_t>(
      [&](std::size_t, std::size_t all) {
        EXPECT_EQ(all, made);
        return std::pair(made++, shares[std::min(all, shares.size() - 1)]);
      },
      [&] { return made < time_for; });
}

TEST(QuietRounds, AreKept) {
  struct Case {
    const char* what;
    std::vector<double> shares;
    std::size_t time_for;
    std::vector<std::size_t> kept;
    double busy_share;
  };
  for (const auto& [what, shares, time_for, kept, busy_share] :
       {Case{"all that are made on a quiet machine", {0.02}, 100, {0, 1, 2, 3, 4}, 0},
        Case{"others make up for busy ones", {0, 0.5, 0, 0.2, 0}, 100, {0, 2, 4, 5, 6}, 0},
        Case{"two are enough where time runs out", {0.5, 0, 0.5, 0, 0.5}, 5, {1, 3}, 0},
        Case{"fewer are a busy machine", {0, 0.3, 0.6, 0.4}, 4, {0, 1, 2, 3}, 0.6},
        Case{"without time there are two", {0}, 0, {0, 1}, 0}, Case{"unless the first is busy", {0.9}, 0, {0}, 0.9}}) {
    const auto rounds = rounds_of(shares, time_for);
    EXPECT_EQ(rounds.kept, kept) << what;
    EXPECT_EQ(rounds.busy_share, busy_share) << what;
  }
}

}  // namespace
}  // namespace roofprof
