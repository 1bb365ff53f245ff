#include "observe/modules/module_index.h"

#include <gtest/gtest.h>

#include "observe/sequence_ring.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// model > left > shared and model > list > right > shared; the list is a container.
class ModuleIndexTest : public ::testing::Test {
 protected:
  static Module place(std::string path, ModuleId parent, bool has_forward = true) {
    Module module;
    module.path = std::move(path);
    module.parent = parent;
    module.has_forward = has_forward;
    return module;
  }

  // Two containers of one parent, of which the second has another module before the shared one.
  ModuleIndex containers() {
    return {{place("", -1), place("(outside)", -1), place("(optimizer)", -1), place("a", 0, false), place("a.0", 3),
             place("b", 0, false), place("b.0", 5), place("b.1", 5)},
            {&model, nullptr, nullptr, nullptr, &shared, nullptr, &left, &shared}};
  }

  int model = 0;
  int left = 0;
  int right = 0;
  int shared = 0;
  int stranger = 0;
  ModuleIndex index{{place("", -1), place("(outside)", -1), place("(optimizer)", -1), place("left", 0),
                     place("left.shared", 3), place("list", 0, false), place("list.0", 5), place("list.0.shared", 6),
                     place("right", 0), place("right.items", 8, false), place("right.items.0", 9)},
                    {&model, nullptr, nullptr, &left, &shared, nullptr, nullptr, nullptr, &right, nullptr, &shared}};
  ThreadState state;
};

TEST_F(ModuleIndexTest, OfSeveralPlacesTheOneUnderTheRunningParent) {
  EXPECT_EQ(index.place_of(&left, state.frames), 3) << "one place needs no stack";
  EXPECT_EQ(index.place_of(&stranger, state.frames), std::nullopt);
  state.frames = {{.module = 0}};
  EXPECT_EQ(index.place_of(&shared, state.frames), 4) << "else the first";
  state.frames = {{.module = 0}, {.module = 8}};
  // The container "right.items" is never on the stack; its parent is.
  EXPECT_EQ(index.place_of(&shared, state.frames), 10);
  state.frames = {{.module = 0}, {.module = 3}};
  EXPECT_EQ(index.place_of(&shared, state.frames), 4);
}

// In C++ calls in between may not be seen.
TEST_F(ModuleIndexTest, ElseTheOneBelowAModuleThatRuns) {
  ModuleIndex silent{
      {place("", -1), place("(outside)", -1), place("(optimizer)", -1), place("left", 0), place("left.shared", 3),
       place("right", 0), place("right.silent", 5), place("right.silent.shared", 6)},
      {&model, nullptr, nullptr, &left, &shared, &right, nullptr, &shared}};
  state.frames = {{.module = 0}, {.module = 5}};
  EXPECT_EQ(silent.place_of(&shared, state.frames), 7);
  EXPECT_TRUE(silent.is_below(7, 5));
  EXPECT_FALSE(silent.is_below(5, 5));
  EXPECT_FALSE(silent.is_below(4, 5));
}

TEST_F(ModuleIndexTest, OfContainersTheOneWhoseTurnItIs) {
  auto ordered = containers();
  ModuleIndex seen = ordered;
  state.frames = {{.module = 0}};
  const auto called = [&](LastCall last) { return *ordered.place_of(&shared, state.frames, last); };
  EXPECT_EQ(called({}).may_be, (std::vector<ModuleId>{4, 7}));
  ordered.set_order(7, 6, /*seen=*/false);
  EXPECT_FALSE(called({}).is_certain());
  EXPECT_EQ(called({.place = 6}).place, 7);
  EXPECT_TRUE(called({.place = 6}).is_certain());
  EXPECT_FALSE(called({.place = 6, .is_certain = false}).is_certain());
  seen.set_order(7, 6, /*seen=*/true);
  const auto elsewhere = *seen.place_of(&shared, state.frames, LastCall{});
  EXPECT_EQ(elsewhere.place, 4);
  EXPECT_TRUE(elsewhere.is_certain());
}

// One that stands in a container several times follows several, itself among them.
TEST_F(ModuleIndexTest, InAContainerSeveralTimes) {
  auto ordered = containers();
  ordered.set_first(4);
  ordered.set_order(7, 6, /*seen=*/true);
  ordered.set_order(7, 7, /*seen=*/true);
  state.frames = {{.module = 0}};
  for (const auto& [last, expected] : std::vector<std::pair<ModuleId, ModuleId>>{{-1, 4}, {6, 7}, {7, 7}, {4, 4}}) {
    const auto call = *ordered.place_of(&shared, state.frames, LastCall{.place = last});
    EXPECT_EQ(call.place, expected) << last;
    EXPECT_TRUE(call.is_certain()) << last;
  }
}

TEST(SequenceRing, FindsWhatWasAssignedAndForgetsTheOldest) {
  SequenceRing ring;
  ring.assign(10, 13, 5);
  ring.assign(13, 14, 0);
  EXPECT_EQ(ring.find(9), std::nullopt);
  EXPECT_EQ(ring.find(10), 5);
  EXPECT_EQ(ring.find(12), 5);
  EXPECT_EQ(ring.find(13), 0);
  EXPECT_EQ(ring.find(14), std::nullopt);
  ring.assign(SequenceRing::kSize + 10, 3 * SequenceRing::kSize, 7);  // more than its size at once
  EXPECT_EQ(ring.find(10), std::nullopt);
  EXPECT_EQ(ring.find(3 * SequenceRing::kSize - 1), 7);
  EXPECT_EQ(ring.find(2 * SequenceRing::kSize), 7);
  EXPECT_EQ(ring.find(2 * SequenceRing::kSize - 1), std::nullopt);
}

}  // namespace
}  // namespace roofprof::observe
