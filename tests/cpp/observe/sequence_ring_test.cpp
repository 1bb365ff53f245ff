#include "observe/sequence_ring.h"

#include <gtest/gtest.h>

namespace roofprof::observe {
namespace {

TEST(SequenceRing, FindsWhatWasAssigned) {
  SequenceRing ring;
  ring.assign(10, 13, 5);
  ring.assign(13, 14, 0);
  EXPECT_EQ(ring.find(9), std::nullopt);
  EXPECT_EQ(ring.find(10), 5);
  EXPECT_EQ(ring.find(12), 5);
  EXPECT_EQ(ring.find(13), 0);
  EXPECT_EQ(ring.find(14), std::nullopt);
}

TEST(SequenceRing, ForgetsTheOldestNotTheNewest) {
  SequenceRing ring;
  ring.assign(0, 1, 1);
  ring.assign(SequenceRing::kSize, SequenceRing::kSize + 1, 2);
  EXPECT_EQ(ring.find(0), std::nullopt);
  EXPECT_EQ(ring.find(SequenceRing::kSize), 2);
}

TEST(SequenceRing, TakesMoreThanItsSizeAtOnce) {
  SequenceRing ring;
  ring.assign(0, 3 * SequenceRing::kSize, 7);
  EXPECT_EQ(ring.find(3 * SequenceRing::kSize - 1), 7);
  EXPECT_EQ(ring.find(2 * SequenceRing::kSize), 7);
  EXPECT_EQ(ring.find(2 * SequenceRing::kSize - 1), std::nullopt);
}

}  // namespace
}  // namespace roofprof::observe
