#include <stdexcept>

#include "ops/call_builder.h"
#include "ops/counting.h"

namespace roofprof::ops::testing {
namespace {

TEST(Registry, EveryLineIsComplete) {
  for (const auto& family : families()) {
    EXPECT_FALSE(family.name.empty());
    for (const auto& line : family.costs) {
      EXPECT_NE(line.op.find("::"), std::string_view::npos) << line.op;
      EXPECT_NE(line.operations, nullptr) << line.op;
      EXPECT_FALSE(line.formula.empty()) << line.op;
      EXPECT_EQ(find_cost(line.op), &line) << line.op << " has one line in one family";
      // An estimate or a convention must say whose it is.
      const bool plain = family.name != "linalg" && family.name != "spectral";
      EXPECT_TRUE(plain || !line.source.empty()) << line.op;
    }
  }
  EXPECT_TRUE(is_free(*find_cost("aten::empty")));
  EXPECT_FALSE(is_free(*find_cost("aten::clone")));
}

TEST(Registry, FormulasSayHowManyOperationsTheyTake) {
  EXPECT_EQ(operations_in("x"), 0);
  EXPECT_EQ(operations_in("min(max(x + 3, 0), 6) / 6"), 4);
  EXPECT_EQ(operations_in("1 / (1 + exp(-x))"), 4);
  EXPECT_EQ(operations_in("x < -l or x > l ? x / 3 : 1/2"), 3);
  EXPECT_EQ(operations_in("x / 2, one function"), std::nullopt);
  EXPECT_EQ(operations_in("as xlogy"), std::nullopt);
}

TEST(Registry, FindsTheInPlaceForm) {
  ASSERT_NE(find_cost("aten::addmm"), nullptr);
  EXPECT_EQ(find_cost("aten::addmm_"), find_cost("aten::addmm"));
  EXPECT_EQ(find_cost("aten::addmm__"), nullptr);
  EXPECT_EQ(find_cost("mylib::unheard_of"), nullptr);
  EXPECT_EQ(find_cost(""), nullptr);
}

TEST(Registry, TraitsStandInForAMissingLine) {
  const auto call = [](Trait trait) { return Call("mylib::op").trait(trait).with("(self fp32 4x8) -> fp32 4"); };
  EXPECT_EQ(cost_of(call(Trait::none)), std::nullopt);
  EXPECT_EQ(cost_of(call(Trait::view)), Work{});
  EXPECT_EQ(cost_of(call(Trait::view_copy))->flops(), 0);
  EXPECT_EQ(cost_of(call(Trait::view_copy))->bytes(), 16 + 16);  // of 32 elements 4 are copied
  EXPECT_EQ(cost_of(call(Trait::pointwise))->flops(), 4);
  EXPECT_EQ(cost_of(call(Trait::pointwise))->bytes(), 128 + 16);
  EXPECT_EQ(cost_of(call(Trait::reduction))->flops(), 32);
  // A line wins over a trait.
  const OpCall mm = Call("aten::mm").trait(Trait::pointwise).with("(self fp32 4x16, mat2 fp32 16x8) -> fp32 4x8");
  EXPECT_EQ(cost_of(mm)->macs, 512);
}

TEST(Registry, TheLineDeclaresWhatMayBeRead) {
  constexpr auto reads_dim = [](const OpCall& call, std::int64_t weight, Work& work) {
    add_operations(work, weight * call.integer("dim", 0), fp32);
  };
  const OpCost declares{"mylib::op", reads_dim, 2, nullptr, "dim", "", ""};
  const OpCost forgets{"mylib::op", reads_dim, 2, nullptr, "", "", ""};
  const OpCall call = Call("mylib::op(dim=5)");
  EXPECT_EQ(cost_of(call, &declares)->flops(), 10);
  EXPECT_TRUE(call.declared_scalars.empty());
  EXPECT_THROW(cost_of(call, &forgets), std::logic_error);
}

TEST(Registry, ImplausibleCostsThrow) {
  const OpCall call = Call("mylib::op(self fp32 4) -> fp32 4");
  const OpCost negative{"mylib::op", per_output, -1, nullptr, "", "", ""};
  EXPECT_THROW(cost_of(call, &negative), std::logic_error);
  constexpr auto more_causal_than_dense = [](const OpCall& op, std::int64_t, Work& work) {
    add_causal_macs(work, 1, 2, op.tensor("self"));
  };
  const OpCost causal{"mylib::op", more_causal_than_dense, 0, nullptr, "", "", ""};
  EXPECT_THROW(cost_of(call, &causal), std::logic_error);
}

TEST(Registry, WithoutASizeThereIsNoCost) {
  const auto matmul = [](std::int64_t rows) {
    return Call("aten::mm").in("self", fp32, {rows, 3}).in("mat2", fp32, {3, 2}).out(fp32, {rows, 2});
  };
  EXPECT_EQ(cost_of(matmul(5))->macs, 30);
  EXPECT_THROW(cost_of(matmul(TensorDesc::kUnknown)), std::domain_error);
  OpCall pool = Call("aten::max_pool2d(self fp32 1x1x4x4, kernel_size=[2,2]) -> fp32 1x1x2x2");
  pool.arguments.at(1).unknown = true;
  EXPECT_THROW(cost_of(pool), std::domain_error);
  // What is free is so whatever its sizes.
  const OpCall view = Call("own::view").trait(Trait::view).in("self", fp32, {TensorDesc::kUnknown});
  EXPECT_EQ(cost_of(view)->bytes(), 0);
}

}  // namespace
}  // namespace roofprof::ops::testing
