#include "analysis/whole/kept.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace roofprof {
namespace {

TEST(Kept, IsDerivedWhenItIsFirstAskedForAndNeverAgain) {
  const Kept<std::vector<int>> kept;
  const auto& first = kept.get([] { return std::vector{1, 2}; });
  EXPECT_EQ(first, (std::vector{1, 2}));
  EXPECT_EQ(&kept.get([]() -> std::vector<int> { throw std::logic_error("derived twice"); }), &first);
}

TEST(Kept, IsDerivedAgainAfterAnException) {
  const Kept<int> kept;
  EXPECT_THROW(kept.get([]() -> int { throw std::runtime_error("not now"); }), std::runtime_error);
  EXPECT_EQ(kept.get([] { return 3; }), 3);
}

TEST(Kept, IsDerivedByOneOfSeveralThreads) {
  const Kept<int> kept;
  std::atomic<int> derived = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(kept.get([&] { return ++derived; }), 1); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(derived, 1);
}

}  // namespace
}  // namespace roofprof
