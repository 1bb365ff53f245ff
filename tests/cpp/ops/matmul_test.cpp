#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

// (4, 16) x (16, 8) in fp32: 4*8*16 = 512 MACs, 64 + 128 elements read, 32 written.
Call product_of_two(std::string name, DType dtype = fp32) {
  return Call(std::move(name)).in("self", dtype, {4, 16}).in("mat2", dtype, {16, 8});
}

// 4 rows of 16 features to 8, with bias: 512 MACs, 64 + 128 + 8 elements read, 32 written.
Call matmul_linear(std::string name) {
  return Call(std::move(name), "(input fp32 4x16, weight fp32 8x16, bias fp32 8) -> fp32 4x8");
}

// self (4, 8) + (4, 16) x (16, 8)
Call blended(std::string name, double beta, double alpha) {
  return Call(std::move(name), "(self fp32 4x8, mat1 fp32 4x16, mat2 fp32 16x8)")
      .scalar("beta", beta)
      .scalar("alpha", alpha)
      .out(fp32, {4, 8});
}

// bf16 (4, 16) with packed integers for (8, 16), 128 bytes however they are packed.
Call packed(std::string name, std::string input = "self") {
  return Call(std::move(name)).in(std::move(input), bf16, {4, 16}).in("mat2", int8, {8, 16});
}

Call grouped(std::string name, Sizes left, Sizes right, Sizes out) {
  return Call(std::move(name))
      .in("self", bf16, left)
      .in("mat2", bf16, right)
      .with("(offs int32 2, bias none)")
      .out(bf16, out);
}

// The same where the last offset is known.
Call grouped_until(std::int64_t last, std::string name, Sizes left, Sizes right, Sizes out) {
  return Call(std::move(name)).in("self", bf16, left).in("mat2", bf16, right).scalar("offs", last).out(bf16, out);
}

Call backward_of_linear(std::string name, Sizes mask) {
  return Call(std::move(name), "(self fp32 4x16, grad_output fp32 4x8, weight fp32 8x16)").scalar("output_mask", mask);
}

constexpr Expected kProduct = {.macs = 512, .flops = 1024, .read = 768, .write = 128};
constexpr Expected kLinear = {.macs = 512, .flops = 1024 + 32, .read = 800, .write = 128};

std::vector<CostCase> matmul_cases() {
  return {
      {product_of_two("aten::mm").out(fp32, {4, 8}), kProduct},
      // Complex: four real MACs for each, twice the bytes.
      {Call("aten::mm(self fp32 4x16 complex, mat2 fp32 16x8 complex) -> fp32 4x8 complex"),
       {.macs = 2048, .flops = 4096}},
      // The same matrix twice is read once.
      {Call("aten::mm(self fp32 8x8, mat2 fp32 8x8 repeated) -> fp32 8x8"), {.macs = 512, .flops = 1024}},
      {product_of_two("aten::mm").overload("out").with("(out fp32 4x8 written) -> fp32 4x8 written"), kProduct},
      {product_of_two("aten::_int_mm", int8).out(int32, {4, 8}), {.macs = 512, .int_ops = 1024}},
      {Call("aten::_sparse_sparse_matmul(self fp32 6x8 sparse 11/176, other fp32 8x6 sparse 11/176) -> fp32 6x6 sparse "
            "9/144"),
       {.not_known = true}},
      // 1-d and 1-d, 2-d and 1-d, 1-d and 2-d, 2-d and 3-d.
      {Call("aten::matmul(self fp32 16, other fp32 16) -> fp32"), {.macs = 16, .flops = 32}},
      {Call("aten::matmul(self fp32 4x16, other fp32 16) -> fp32 4"), {.macs = 64, .flops = 128}},
      {Call("aten::matmul(self fp32 16, other fp32 16x8) -> fp32 8"), {.macs = 128, .flops = 256}},
      {Call("aten::matmul(self fp32 4x16, other fp32 5x16x8) -> fp32 5x4x8"), {.macs = 2560, .flops = 5120}},
      // Broadcast over 200: a published case, 250,828,800 bytes in all.
      {Call("aten::matmul(self fp32 600x200x8x1x64, other fp32 600x1x8x64x1) -> fp32 600x200x8x1x1"),
       {.macs = 61'440'000, .flops = 122'880'000}},
      {Call("aten::matmul(self fp32 0x16, other fp32 16x8) -> fp32 0x8"), {.read = 512}},
      {Call("aten::inner(self fp32 4x16, other fp32 8x16) -> fp32 4x8"), kProduct},
      // With a number it only multiplies.
      {Call("aten::inner(self fp32 1024, other fp32) -> fp32 1024"), {.flops = 1024}},
      {Call("aten::inner(self fp32, other fp32 64x1024) -> fp32 64x1024"), {.flops = 65536}},

      {matmul_linear("aten::linear"), kLinear},
      {Call("aten::linear(input fp32 2x3x16, weight fp32 8x16, bias none) -> fp32 2x3x8"),
       {.macs = 768, .flops = 1536}},
      {Call("mkl::_mkl_linear(X fp32 4x16, MKL_W fp32 8x16, ORI_W fp32 8x16, B fp32 8) -> fp32 4x8"), kLinear},
      {Call("mkldnn::_linear_pointwise(X fp32 4x16, W fp32 8x16, B fp32 8) -> fp32 4x8"),
       {.macs = 512, .flops = 1024 + 32 + 32}},

      {blended("aten::addmm", 1, 1), {.macs = 512, .flops = 1056, .read = 896, .write = 128}},
      {blended("aten::addmm", 0.5, 2), {.macs = 512, .flops = 1120, .read = 896, .write = 128}},
      {blended("aten::addmm", 0, 1), {.macs = 512, .flops = 1024, .read = 768, .write = 128}},
      // A bias of 8 expanded to (4, 8) is held once.
      {Call(
           "aten::addmm(self fp32 4x8 expanded 10, mat1 fp32 4x16, mat2 fp32 16x8, beta none, alpha none) -> fp32 4x8"),
       {.macs = 512, .flops = 1056, .read = 800, .write = 128}},
      {Call("aten::addmm_(self fp32 4x8 written, mat1 fp32 4x16, mat2 fp32 16x8) -> fp32 4x8 written"),
       {.macs = 512, .flops = 1056, .read = 896, .write = 128}},
      {Call("aten::addmm_(self fp32 4x8 written, mat1 fp32 4x16, mat2 fp32 16x8, beta=0) -> fp32 4x8 written"),
       {.macs = 512, .flops = 1024, .read = 768, .write = 128}},
      {Call("aten::addbmm(self fp32 4x8, batch1 fp32 3x4x16, batch2 fp32 3x16x8, beta=1, alpha=1) -> fp32 4x8"),
       {.macs = 1536, .flops = 3072 + 32, .read = 2432, .write = 128}},
      {blended("aten::_addmm_activation", 1, 1).scalar("use_gelu", false),
       {.macs = 512, .flops = 1024 + 32 + 32, .read = 896, .write = 128}},
      {blended("aten::_addmm_activation", 1, 1).scalar("use_gelu", true),
       {.macs = 512, .flops = 1024 + 32 + 160, .read = 896, .write = 128}},
      {Call("aten::addr(self fp32 4x8, vec1 fp32 4, vec2 fp32 8, beta=1, alpha=1) -> fp32 4x8"),
       {.flops = 64, .read = 176, .write = 128}},
      {Call("aten::outer(self fp32 4, vec2 fp32 8) -> fp32 4x8"), {.flops = 32}},

      // fp8 operands, two fp32 scales, bf16 out; then fp4, two elements to a byte.
      {product_of_two("aten::_scaled_mm", fp8).with("(scale_a fp32, scale_b fp32, bias none) -> bf16 4x8"),
       {.macs = 512, .flops = 1056}},
      {product_of_two("aten::_scaled_mm", fp4).with("(scale_a fp8 4x2, scale_b fp8 8x2, bias bf16 8) -> bf16 4x8"),
       {.macs = 1024, .flops = 2048 + 32 + 32}},
      // Rows split over 2 groups, a batch of 2 groups, the contraction split over 2 groups.
      {grouped("aten::_grouped_mm", {10, 16}, {2, 16, 8}, {10, 8}),
       {.macs = 1280, .flops = 2560, .read = 840, .write = 160}},
      {grouped("aten::_grouped_mm", {2, 5, 16}, {2, 16, 8}, {2, 5, 8}),
       {.macs = 1280, .flops = 2560, .read = 840, .write = 160}},
      {grouped("aten::_grouped_mm", {5, 16}, {16, 8}, {2, 5, 8}),
       {.macs = 640, .flops = 1280, .read = 424, .write = 160}},
      // The offsets end at 6 of 10 rows, 6 of 8 columns, 3 of 5 of the contraction; one is beyond the end.
      {grouped_until(6, "aten::_grouped_mm", {10, 16}, {2, 16, 8}, {10, 8}),
       {.macs = 6 * 16 * 8, .flops = 2 * 6 * 16 * 8, .read = 2 * (6 * 16 + 2 * 16 * 8), .write = 2 * 6 * 8}},
      {grouped_until(6, "aten::_grouped_mm", {2, 5, 16}, {16, 8}, {5, 8}),
       {.macs = 5 * 16 * 6, .flops = 2 * 5 * 16 * 6, .read = 2 * (2 * 5 * 16 + 16 * 6), .write = 2 * 5 * 6}},
      {grouped_until(3, "aten::_grouped_mm", {5, 5}, {5, 8}, {2, 5, 8}),
       {.macs = 5 * 3 * 8, .flops = 2 * 5 * 3 * 8, .read = 2 * (5 * 3 + 3 * 8), .write = 2 * 2 * 5 * 8}},
      {grouped_until(11, "aten::_grouped_mm", {10, 16}, {2, 16, 8}, {10, 8}),
       {.macs = 1280, .flops = 2560, .read = 832, .write = 160}},
      {grouped_until(6, "aten::_scaled_grouped_mm", {10, 16}, {2, 16, 8}, {10, 8}),
       {.macs = 768, .flops = 2 * 768 + 6 * 8, .read = 2 * (6 * 16 + 2 * 16 * 8), .write = 2 * 6 * 8}},
      {grouped("aten::_scaled_grouped_mm", {10, 16}, {2, 16, 8}, {10, 8}),
       {.macs = 1280, .flops = 2640, .read = 840, .write = 160}},

      {packed("aten::_weight_int8pack_mm").with("(scales bf16 8) -> bf16 4x8"), {.macs = 512, .flops = 1056}},
      {packed("aten::_weight_int4pack_mm").with("(qScaleAndZeros bf16 1x8x2) -> bf16 4x8"),
       {.macs = 512, .flops = 1024 + 256}},
      {packed("aten::_weight_int4pack_mm_for_cpu").with("(qScaleAndZeros bf16 1x8x2) -> bf16 4x8"),
       {.macs = 512, .flops = 1024 + 256}},
      {packed("aten::_mixed_dtypes_linear", "input").with("(scale bf16 8, bias bf16 8) -> bf16 4x8"),
       {.macs = 512, .flops = 1024 + 32 + 128}},

      // n 4, in1 16, in2 8, out 5.
      {Call("aten::bilinear(input1 fp32 4x16, input2 fp32 4x8, weight fp32 5x16x8, bias fp32 5) -> fp32 4x5"),
       {.macs = 2560, .flops = 5140}},
      {Call("aten::_trilinear(i1 fp32 4x16, i2 fp32 5x16x8, i3 fp32 4x8, expand1=[1,3], expand2=[0], expand3=[1,2]) -> "
            "fp32 4x5"),
       {.macs = 2560, .flops = 5120}},

      // (4, 16) x (16, 8) and (2, 3) x (3, 5).
      {Call("aten::_foreach_mm(self [fp32 4x16; fp32 2x3], mat2 [fp32 16x8; fp32 3x5]) -> [fp32 4x8; fp32 2x5]"),
       {.macs = 512 + 30, .flops = 1084}},
      // 5 sums of 3 tensors with 4 elements each.
      {Call("aten::_compute_linear_combination(input fp32 3x4, coefficients fp32 5x3) -> fp32 5x4"),
       {.macs = 60, .flops = 120}},
      // 2 images of 4 x 5 points: 2 coordinates of 3 products each.
      {Call("aten::cudnn_affine_grid_generator(theta fp32 2x2x3) -> fp32 2x4x5x2"), {.macs = 240, .flops = 480}},
      {Call("aten::cudnn_affine_grid_generator_backward(grad fp32 2x4x5x2) -> fp32 2x2x3"),
       {.macs = 240, .flops = 480}},

      {backward_of_linear("aten::linear_backward", {1, 1, 1}).with("-> fp32 4x16, fp32 8x16, fp32 8"),
       {.macs = 1024, .flops = 2048 + 32, .read = 896, .write = 800}},
      {backward_of_linear("aten::linear_backward", {1, 0, 0}).with("-> fp32 4x16, none, none"),
       {.macs = 512, .flops = 1024, .read = 640, .write = 256}},
      {backward_of_linear("aten::linear_backward", {0, 1, 1}).with("-> none, fp32 8x16, fp32 8"),
       {.macs = 512, .flops = 1024 + 32, .read = 384, .write = 544}},
      {backward_of_linear("aten::mkldnn_linear_backward", {1, 1, 1}).with("-> fp32 4x16, fp32 8x16, fp32 8"),
       {.macs = 1024, .flops = 2048 + 32, .read = 896, .write = 800}},
      {Call("aten::matmul_backward(grad fp32 4x8, self fp32 4x16, other fp32 16x8, mask=[0,1]) -> none, fp32 16x8"),
       {.macs = 512, .flops = 1024, .read = 384, .write = 512}},

      // 4 x 5 pairs of points in 3 dimensions; 6 pairs among 4 points.
      {Call("aten::_cdist_forward(x1 fp32 4x3, x2 fp32 5x3) -> fp32 4x5"), {.flops = 20 * (3 * 3 + 1)}},
      {Call("aten::_cdist_backward(grad fp32 4x5, x1 fp32 4x3, x2 fp32 5x3, cdist fp32 4x5) -> fp32 4x3"),
       {.flops = 20 * 3 * 4}},
      {Call("aten::_pdist_forward(self fp32 4x3) -> fp32 6"), {.flops = 6 * 10}},
      {Call("aten::_pdist_backward(grad fp32 6, self fp32 4x3, pdist fp32 6) -> fp32 4x3"), {.flops = 6 * 12}},
  };
}

TEST(Matmul, Costs) { check_family(matmul_costs(), matmul_cases()); }

TEST(Matmul, CountsSaturate) {
  const std::int64_t huge = std::int64_t{1} << 40;
  const Work work =
      *cost_of(Call("aten::mm").in("self", fp32, {huge, huge}).in("mat2", fp32, {huge, huge}).out(fp32, {huge, huge}));
  EXPECT_EQ(work.macs, kSaturated);
  EXPECT_EQ(work.flops(), kSaturated);
  EXPECT_EQ(work.bytes(), kSaturated);
}

}  // namespace
}  // namespace roofprof::ops::testing
