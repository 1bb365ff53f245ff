#include "analysis/scaling_law.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>

namespace roofprof {
namespace {

double gunther(double ranks, double sigma, double kappa) {
  return 1000 * ranks / (1 + sigma * (ranks - 1) + kappa * ranks * (ranks - 1));
}

TEST(ScalingLaw, OfExactDataIsTheirs) {
  const std::vector<double> ranks = {1, 2, 4, 8};
  std::vector<double> rates;
  for (const double n : ranks) rates.push_back(gunther(n, 0.05, 0.002));
  const auto law = fit_scaling_law(ranks, rates, std::vector<std::optional<double>>(4));
  EXPECT_NEAR(law.costs[0], 1e-3, 1e-12);
  EXPECT_NEAR(law.costs[1], 0.05e-3, 1e-12);
  EXPECT_NEAR(law.costs[2], 0.002e-3, 1e-12);
  EXPECT_TRUE(law.from_residuals);
  const auto interval = law.interval(16, 0.8);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->first, gunther(16, 0.05, 0.002), 1e-6);  // nothing is left that could be noise
  EXPECT_NEAR(interval->second, gunther(16, 0.05, 0.002), 1e-6);
}

// Of two points all that is lost may be contention or coherency: 2 / 1.6 = 1 + sigma = 1 + 2 kappa.
TEST(ScalingLaw, OfTwoPointsHoldsBothExtremes) {
  const auto law = fit_scaling_law({1, 2}, {1, 1.6}, {0.0, 0.0});
  const auto interval = law.interval(8, 0.8);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->first, 8 / (1 + 56 * 0.125), 1e-9);
  EXPECT_NEAR(interval->second, 8 / (1 + 7 * 0.25), 1e-9);
}

TEST(ScalingLaw, FactorsAreNeverNegative) {
  const auto law = fit_scaling_law({1, 2, 4, 8}, {1, 2.2, 4.6, 9.5}, std::vector<std::optional<double>>(4));
  EXPECT_GT(law.costs[0], 0);
  EXPECT_EQ(law.costs[1], 0);
  EXPECT_EQ(law.costs[2], 0);
}

// Three factors cannot be told apart by two numbers of ranks, however many points there are.
TEST(ScalingLaw, OfPointsThatRepeat) {
  const auto law = fit_scaling_law({2, 2, 4, 4}, {2, 2, 3.2, 3.2}, {0.01, 0.01, 0.01, 0.01});
  for (const double ranks : {2.0, 4.0}) {
    const double cost = law.costs[0] + law.costs[1] * (ranks - 1) + law.costs[2] * ranks * (ranks - 1);
    EXPECT_NEAR(ranks / cost, ranks == 2 ? 2 : 3.2, 1e-9);
  }
}

TEST(ScalingLaw, HasNoIntervalWhereNothingTellsOne) {
  EXPECT_FALSE(fit_scaling_law({1, 2, 4}, {1, 1.8, 3}, {std::nullopt, 0.01, 0.01}).interval(8, 0.8));
  EXPECT_TRUE(fit_scaling_law({1, 2, 4}, {1, 1.8, 3}, {0.01, 0.01, 0.01}).interval(8, 0.8));
}

// Residuals and errors are small: about their share of a normal distribution lies within.
TEST(ScalingLaw, AnIntervalIsAsWideAsTheErrorsSay) {
  const auto law = fit_scaling_law({1, 2, 4}, {1, 1, 1}, {0.01, 0.01, 0.01});  // the whole cost is each rank's own
  const auto narrow = law.interval(1, 0.2), wide = law.interval(1, 0.8);
  ASSERT_TRUE(narrow && wide);
  EXPECT_LT(wide->first, narrow->first);
  EXPECT_GT(wide->second, narrow->second);
  EXPECT_NEAR(wide->second - wide->first, 2 * 1.2816 * 0.01, 0.004);  // of one rank, whose own point says most
}

TEST(ScalingLaw, RefusesListsThatDoNotFit) {
  EXPECT_THROW(fit_scaling_law({}, {}, {}), std::invalid_argument);
  EXPECT_THROW(fit_scaling_law({1, 2}, {1}, {0.0, 0.0}), std::invalid_argument);
}

}  // namespace
}  // namespace roofprof
