#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// 2 x 3 floats, 24 bytes.
const std::vector<CostCase> kMovementCases = {
    {Call("aten::_assert_async(self boolean)"), {.read = 1}},
    {Call("aten::_to_copy(self fp32 2x3) -> bf16 2x3"), {.read = 24, .write = 12}},
    // The destination is written, not read; an expanded source is held once.
    {Call("aten::copy_(self fp32 2x3 written, src fp16 2x3) -> fp32 2x3 written"), {.read = 12, .write = 24}},
    {Call("aten::copy_(self fp32 2x3 written, src fp32 2x3 expanded 10) -> fp32 2x3 written"),
     {.read = 12, .write = 24}},
    {Call("aten::unbind_copy(self fp32 2x3) -> [fp32 3; fp32 3]"), {.read = 24, .write = 24}},
    {Call("aten::unbind_copy(self fp32 2x3 expanded 10) -> [fp32 3; fp32 3]"), {.read = 12, .write = 24}},
    {Call("aten::narrow_copy(self fp32 100x3) -> fp32 2x3"), {.read = 24, .write = 24}},
    // Two parts of three rows are left out; written where out= says.
    {Call("aten::split_with_sizes_copy(all_gather_output fp32 6x3, out [fp32 2x3; fp32 1x3] written)"),
     {.read = 36, .write = 36}},
    // A key cache of 7 positions takes one more.
    {Call("aten::cat(tensors [bf16 2x7x8; bf16 2x1x8]) -> bf16 2x8x8"), {.read = 224 + 32, .write = 256}},
    {Call("aten::repeat(self fp32 2x3) -> fp32 4x9"), {.read = 24, .write = 144}},
    // 2 x 2 windows of a 3 x 3 image: 4 columns of 4.
    {Call("aten::im2col(self fp32 1x1x3x3) -> fp32 1x4x4"), {.read = 36, .write = 64}},
    {Call("aten::col2im(self fp32 1x4x4) -> fp32 1x1x3x3"), {.flops = 16, .read = 64, .write = 36}},
    // Two more on each side of the last dimension.
    {Call("aten::reflection_pad1d_backward(grad_output fp32 2x7, self fp32 2x3) -> fp32 2x3"),
     {.flops = 14, .read = 56, .write = 24}},
    {Call("aten::zeros_like(self fp32 2x3) -> fp32 2x3"), {.write = 24}},
    {Call("aten::fill_(self fp32 2x3 written) -> fp32 2x3 written"), {.write = 24}},
    {Call("aten::logspace(size=[2,3]) -> fp32 2x3"), {.flops = 6, .write = 24}},
    {Call("aten::randint(n=6) -> int64 6"), {.int_ops = 6, .write = 48}},
    {Call("aten::normal_(self fp32 2x3 written) -> fp32 2x3 written"), {.flops = 6, .write = 24}},
    {Call("aten::normal(mean fp32 2x3, std fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 48, .write = 24}},
    {Call("aten::bernoulli(self fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 24, .write = 24}},
    {Call("aten::poisson(self fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 24, .write = 24}},
    {Call("aten::binomial(count fp32 2x3, prob fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 48, .write = 24}},
    {Call("aten::_standard_gamma(self fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 24, .write = 24}},
    {Call("aten::_sample_dirichlet(self fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 24, .write = 24}},
    {Call("aten::multinomial(self fp32 2x50) -> int64 2x1"), {.flops = 300, .read = 400, .write = 16}},
};

TEST(Movement, CostsAreAsWrittenOut) { check_family(movement_costs(), kMovementCases); }

}  // namespace
}  // namespace roofprof::ops
