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

TEST(QuietRounds, AreAllThatAreMadeOnAQuietMachine) {
  const auto rounds = rounds_of({0.02}, 100);
  EXPECT_EQ(rounds.kept, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(rounds.busy_share, 0);
}

TEST(QuietRounds, MakeUpForBusyOnes) {
  const auto rounds = rounds_of({0, 0.5, 0, 0.2, 0}, 100);
  EXPECT_EQ(rounds.kept, (std::vector<std::size_t>{0, 2, 4, 5, 6}));
  EXPECT_EQ(rounds.busy_share, 0);
}

TEST(QuietRounds, TwoAreEnoughWhereTimeRunsOut) {
  const auto rounds = rounds_of({0.5, 0, 0.5, 0, 0.5}, 5);
  EXPECT_EQ(rounds.kept, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(rounds.busy_share, 0);
}

TEST(QuietRounds, FewerAreABusyMachine) {
  const auto rounds = rounds_of({0, 0.3, 0.6, 0.4}, 4);
  EXPECT_EQ(rounds.kept.size(), 4U);
  EXPECT_EQ(rounds.busy_share, 0.6);
}

TEST(QuietRounds, WithoutTimeThereAreTwoUnlessTheFirstIsBusy) {
  EXPECT_EQ(rounds_of({0}, 0).kept.size(), 2U);
  EXPECT_EQ(rounds_of({0.9}, 0).kept.size(), 1U);
  EXPECT_EQ(rounds_of({0.9}, 0).busy_share, 0.9);
}

}  // namespace
}  // namespace roofprof
