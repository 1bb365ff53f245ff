// What is said of a first call that did other work than those after it, by hand.

#include "join/host_profile.h"

#include <gtest/gtest.h>

#include "support/pass_builder.h"

namespace roofprof {
namespace {

using testing::op_in_pass;

struct SetsUp : testing::ObservedBuilder {
  ModuleId layer = module("layer", "Attention");
  ModuleId head = module("head", "Linear");
  Pass first;
  Pass later;

  SetsUp() {
    first.ops = {op_in_pass(1, "aten::mm", layer, 4, 50), op_in_pass(2, "aten::triu", layer, 1, 5),
                 op_in_pass(3, "aten::arange", layer, 2, 5)};
    later.ops = {op_in_pass(1, "aten::mm", layer, 4, 40)};
  }
  Note note() const { return note_on_first_call(first, later, observed.tree.modules).value(); }
};

constexpr const char* kThen = "; counts and times are those of the later calls";

TEST(FirstCall, NamesWhatItRanInAddition) {
  const auto note = SetsUp().note();
  EXPECT_EQ(note.code, "first-call");
  EXPECT_EQ(note.text, std::string("the first call ran 3 more operators than those after it: aten::arange (2 calls), "
                                   "aten::triu (1 call)") +
                           kThen);
  EXPECT_EQ(note.where, std::vector<std::string>{"layer"});
}

TEST(FirstCall, NamesWhatItLeftOut) {
  SetsUp net;
  net.first.ops.resize(1);
  net.later.ops.push_back(op_in_pass(4, "aten::add_", net.head, 1, 5, Phase::backward));
  EXPECT_EQ(net.note().text,
            std::string("the first call ran 1 fewer operator than those after it: aten::add_ (1 call)") + kThen);
  EXPECT_EQ(net.note().where, std::vector<std::string>{"head"});
}

TEST(FirstCall, NamesBothAndCountsWhatIsLeft) {
  SetsUp net;
  for (std::uint32_t op = 5; op < 8; ++op) {
    net.first.ops.push_back(op_in_pass(op, "aten::op" + std::to_string(op), net.layer, 1, 5));
  }
  net.later.ops.push_back(op_in_pass(4, "aten::add_", net.head, 2, 5));
  EXPECT_EQ(net.note().text, std::string("the first call ran 6 more operators than those after it: aten::arange (2 "
                                         "calls), aten::op5 (1 call), aten::op6 (1 call) and 2 more; and 2 fewer "
                                         "operators: aten::add_ (2 calls)") +
                                 kThen);
}

TEST(FirstCall, NamesThoseFirstThatDidSomething) {
  SetsUp net;
  net.first.ops.push_back(op_in_pass(5, "aten::view", net.layer, 9, 5));
  net.first.ops.back().work = {};
  EXPECT_NE(net.note().text.find("aten::arange (2 calls), aten::triu (1 call), aten::view (9 calls)"),
            std::string::npos);
}

TEST(FirstCall, OfOtherShapesNamesTheModules) {
  SetsUp net;
  net.first.ops.resize(1);
  net.first.ops[0].signature = 7;
  EXPECT_EQ(
      net.note().text,
      std::string("the first call ran the same operators as those after it with other shapes or in other modules") +
          kThen);
  EXPECT_EQ(net.note().where, std::vector<std::string>{"layer"});
}

TEST(FirstCall, TheReportHasTheLaterCallsCounts) {
  SetsUp net;
  net.observed.first_call = net.first;
  net.observed.counting = net.later;
  net.observed.timed = {net.later};
  const auto derived = net.derived();
  EXPECT_EQ(derived.total().flops, 4'000);
  EXPECT_EQ(derived.coverage().notes.front().code, "first-call");
}

}  // namespace
}  // namespace roofprof
