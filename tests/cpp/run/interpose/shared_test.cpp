// One module in several containers, whose own calls are not seen: what is called around it tells where it was called.

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "run/interpose/profiled.h"

namespace roofprof::testing {
namespace {

using namespace torch::nn;

constexpr std::int64_t kShared = 3 * 4 * 4;

struct Pair : Module {
  Pair(Sequential first, Sequential second)
      : a(register_module("a", std::move(first))), b(register_module("b", std::move(second))) {}
  torch::Tensor forward(const torch::Tensor& x) { return b->forward(a->forward(a->forward(x))); }
  Sequential a, b;
};

Report profiled_pair(const Sequential& a, const Sequential& b) {
  const auto net = std::make_shared<Pair>(a, b);
  return profiled(net, torch::rand({3, 4}));
}

void expect_certain(const Report& report) {
  for (const auto& row : report.rows()) EXPECT_FALSE(row.inferred) << row.path;
  for (const auto& note : report.coverage().notes) EXPECT_NE(note.code, "place-not-known");
}

TEST(Shared, IsCalledAfterItsPredecessor) {
  Linear shared(4, 4);
  const Report report = profiled_pair(Sequential(shared, ReLU()), Sequential(ReLU(), Tanh(), shared));
  EXPECT_EQ(macs_by_module(report), (Macs{{"a.0", 2 * kShared}, {"b.2", kShared}}));
  EXPECT_EQ(report.row("a.0").calls, 2);
  EXPECT_EQ(report.row("b.2").calls, 1);
  expect_certain(report);
}

TEST(Shared, TellsOfItsBackward) {
  Linear shared(4, 4);
  const auto net = std::make_shared<Pair>(Sequential(shared, ReLU()), Sequential(Tanh(), shared));
  const auto x = torch::rand({3, 4}, torch::requires_grad());
  const Report report = profiled(net, [&] { net->forward(x).sum().backward(); });
  EXPECT_EQ(macs_by_module(report, "forward"), (Macs{{"a.0", 2 * kShared}, {"b.1", kShared}}));
  EXPECT_EQ(macs_by_module(report, "backward"), (Macs{{"a.0", 4 * kShared}, {"b.1", 2 * kShared}}));
  EXPECT_FALSE(report.row("a.0").inferred);
}

TEST(Shared, IsMarkedWhereNothingTells) {
  Linear shared(4, 4);
  const Report report = profiled_pair(Sequential(shared, ReLU()), Sequential(shared, Tanh()));
  EXPECT_EQ(report.total().macs, 3 * kShared);
  EXPECT_TRUE(report.row("a.0").inferred);
  EXPECT_TRUE(report.row("b.0").inferred);
  EXPECT_FALSE(report.row("a.1").inferred);
  const auto& notes = report.coverage().notes;
  const auto note = std::ranges::find(notes, "place-not-known", &Note::code);
  ASSERT_NE(note, notes.end());
  EXPECT_EQ(note->where, (std::vector<std::string>{"a.0", "b.0"}));
  EXPECT_NE(report.table().find("~0"), std::string::npos);
}

}  // namespace
}  // namespace roofprof::testing
