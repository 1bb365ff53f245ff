// Costs that users register.

#include <algorithm>
#include <stdexcept>

#include "ops/call_builder.h"
#include "roofprof/op_costs.h"

namespace roofprof::ops::testing {
namespace {

// Counts `flops` in fp32 whatever the call.
OpCosts::Function flops(std::int64_t count) {
  return [count](const OpCall&, Work& work) { work.operations_in(fp32) += count; };
}

std::int64_t flops_of(const OpCall& call) { return cost_of(call).value_or(Work{}).flops(); }

TEST(OwnCosts, GiveTheWorkAndKeepTheCompulsoryBytes) {
  OpCosts::add("own::conv", [](const OpCall& call, Work& work) {
    work.add_macs(call.tensor("x").numel() * call.integer("taps", 1), call.compute_dtype());
  });
  const auto work = cost_of(Call("own::conv(x fp16 2x8, taps=3) -> fp16 2x6"));
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(work->macs, 48);
  EXPECT_EQ(work->causal_macs, 48);
  EXPECT_EQ(work->operations_in(fp16), 96);
  EXPECT_EQ(work->read_bytes, 32);
  EXPECT_EQ(work->write_bytes, 24);
}

TEST(OwnCosts, ANearerNameWins) {
  OpCosts::add("own::some", flops(1));
  OpCosts::add("own::some.inner", flops(2));
  OpCosts::add("own::some.default", flops(3));
  EXPECT_EQ(flops_of(Call("own::some.outer")), 1);
  EXPECT_EQ(flops_of(Call("own::some.inner")), 2);
  EXPECT_EQ(flops_of(Call("own::some")), 3);
  EXPECT_EQ(flops_of(Call("own::some_.inner")), 2) << "the in-place form";
}

TEST(OwnCosts, TakeTheirPlaceAndGiveItBack) {
  const OpCall relu = Call("aten::relu(self fp32 4) -> fp32 4");
  const OpCall relu_ = Call("aten::relu_(self fp32 4 written) -> fp32 4 written");
  const auto* before = find_cost("aten::relu");
  const auto generation = cost_generation();
  OpCosts::add("aten::relu", flops(7));
  OpCosts::add("aten::relu", flops(70));
  EXPECT_EQ(flops_of(relu), 70);
  EXPECT_EQ(flops_of(relu_), 70);
  EXPECT_GT(cost_generation(), generation);
  OpCosts::remove("aten::relu");
  EXPECT_EQ(find_cost("aten::relu"), before);
  EXPECT_EQ(flops_of(relu), 4);
  OpCosts::remove("aten::relu");  // nothing left to take back
}

TEST(OwnCosts, AreListed) {
  OpCosts::add("own::listed", flops(1), "one each");
  const auto lines = own_costs();
  const auto line = std::ranges::find(lines, "own::listed", &OpCost::op);
  ASSERT_NE(line, lines.end());
  EXPECT_EQ(line->formula, "one each");
}

TEST(OwnCosts, RefuseWhatNamesNoOperator) {
  for (const auto* name : {"", "mylib", "mylib::", "::op", "mylib.op", "mylib::op."}) {
    EXPECT_THROW(OpCosts::add(name, flops(1)), std::invalid_argument) << name;
  }
  EXPECT_THROW(OpCosts::add("own::empty", {}), std::invalid_argument);
}

TEST(OwnCosts, MayNotBeImplausible) {
  OpCosts::add("own::negative", flops(-1));
  OpCosts::add("own::causal", [](const OpCall&, Work& work) { work.causal_macs = 1; });
  EXPECT_THROW(cost_of(Call("own::negative")), std::logic_error);
  EXPECT_THROW(cost_of(Call("own::causal")), std::logic_error);
}

}  // namespace
}  // namespace roofprof::ops::testing
