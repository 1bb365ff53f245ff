#include <vector>

#include "ops/call_builder.h"
#include "ops/registry.h"

namespace roofprof::ops::testing {
namespace {

// Three sequences of 3, 5 and 2 tokens with 8 features: 80 floats, 320 bytes.
const std::vector<Sizes> kTokens = {{3, 8}, {5, 8}, {2, 8}};
const std::vector<Sizes> kNarrow = {{3, 4}, {5, 4}, {2, 4}};
// As many scores for each: 9 + 25 + 4 = 38.
const std::vector<Sizes> kNestedScores = {{3, 3}, {5, 5}, {2, 2}};
const std::vector<Sizes> kTurned = {{8, 3}, {8, 5}, {8, 2}};

const std::vector<CostCase> kNestedCases = {
    // To 3 x 5 x 8.
    {Call("aten::to_padded_tensor").nested("self", fp32, kTokens).out(fp32, {3, 5, 8}), {.read = 320, .write = 480}},
    {Call("aten::_nested_tensor_from_mask(t fp32 3x5x8, mask boolean 3x5)").out_nested(fp32, kTokens),
     {.read = 320 + 15, .write = 320}},
    {Call("aten::_nested_tensor_softmax_with_shape(self fp32 3x2x5x5)")
         .nested("query", fp32, kTokens)
         .out(fp32, {3, 2, 5, 5}),
     {.flops = 750, .read = 600, .write = 600}},
    {Call("aten::_nested_select_backward(grad_output fp32 5x8)")
         .nested("self", fp32, kTokens)
         .out_nested(fp32, kTokens),
     {.read = 160, .write = 320}},
};

TEST(Nested, Costs) { check_family(nested_costs(), kNestedCases); }

// Lines of other families: component by component, what is dense beside them once.
const std::vector<CostCase> kNestedElsewhere = {
    // 10 tokens of 8 x 4 MACs; weight and bias are read once.
    {Call("aten::linear")
         .nested("input", fp32, kTokens)
         .with("(weight fp32 4x8, bias fp32 4)")
         .out_nested(fp32, kNarrow),
     {.macs = 320, .flops = 640 + 40, .read = 320 + 128 + 16, .write = 160}},
    // Gradients of weight and bias are written once.
    {Call("aten::linear_backward")
         .nested("self", fp32, kTokens)
         .nested("grad_output", fp32, kNarrow)
         .with("(weight fp32 4x8, output_mask=[1,1,1])")
         .out_nested(fp32, kTokens)
         .with("-> fp32 4x8, fp32 4"),
     {.macs = 640, .flops = 1280 + 40, .read = 320 + 160 + 128, .write = 320 + 128 + 16}},
    {Call("aten::matmul").nested("self", fp32, kTokens).nested("other", fp32, kTurned).out_nested(fp32, kNestedScores),
     {.macs = 38 * 8, .flops = 38 * 16, .read = 640, .write = 152}},
    {Call("aten::relu_").nested("self", fp32, kTokens).written().out_nested(fp32, kTokens).written(),
     {.flops = 80, .read = 320, .write = 320}},
    {Call("aten::sum").nested("self", fp32, kTokens).out(fp32, {}), {.flops = 80, .read = 320, .write = 4}},
    // Two heads of depth 4: 76 scores of 8 MACs, of which a causal mask leaves 2 x (6 + 15 + 3).
    {Call("aten::scaled_dot_product_attention")
         .nested("query", fp32, {{2, 3, 4}, {2, 5, 4}, {2, 2, 4}})
         .nested("key", fp32, {{2, 3, 4}, {2, 5, 4}, {2, 2, 4}})
         .nested("value", fp32, {{2, 3, 4}, {2, 5, 4}, {2, 2, 4}})
         .scalar("is_causal", true)
         .out_nested(fp32, {{2, 3, 4}, {2, 5, 4}, {2, 2, 4}}),
     {.macs = 76 * 8, .flops = 76 * 16 + 76 * 6, .read = 3 * 320, .write = 320, .causal_macs = 48 * 8}},
};

TEST(Nested, OpsOnComponents) { expect_costs(kNestedElsewhere); }

TEST(Nested, RaggedSizesAreNoSizes) {
  const OpCall call = Call("aten::sum").nested("self", fp32, kTokens).out(fp32, {});
  EXPECT_EQ(call.tensor("self").size(0), 3);
  EXPECT_EQ(call.tensor("self").size(-1), 8);
  EXPECT_THROW(call.tensor("self").size(1), std::out_of_range);
  EXPECT_EQ(call.tensor("self").numel(), 80);
  EXPECT_TRUE(calls_on_components(call).empty());
}

}  // namespace
}  // namespace roofprof::ops::testing
