#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

// 2 x 3 channels of 8 positions along each dimension, fp32, pooled by 2 along each: 6 * 8^dims in, 6 * 4^dims out.
Sizes pooling_sizes(int dims, std::int64_t extent) {
  Sizes result = {2, 3};
  for (int i = 0; i < dims; ++i) result.push_back(extent);
  return result;
}

Call pool(std::string name, int dims) {
  return Call(std::move(name))
      .in("self", fp32, pooling_sizes(dims, 8))
      .scalar("kernel_size", Sizes(static_cast<std::size_t>(dims), 2))
      .out(fp32, pooling_sizes(dims, 4));
}

constexpr Expected kPool1d = {.flops = 24 * 2, .read = 192, .write = 96};
constexpr Expected kPool2d = {.flops = 96 * 4, .read = 1536, .write = 384};
constexpr Expected kPool3d = {.flops = 384 * 8, .read = 12288, .write = 1536};

Call average_backward(std::string name, int dims) {
  return Call(std::move(name))
      .in("grad_output", fp32, pooling_sizes(dims, 4))
      .in("self", fp32, pooling_sizes(dims, 8))
      .with("(kernel_size=[2])")
      .out(fp32, pooling_sizes(dims, 8));
}
constexpr Expected kAverageBackward2d = {.flops = 96 * 5, .read = 384, .write = 1536};
constexpr Expected kAverageBackward3d = {.flops = 384 * 9, .read = 1536, .write = 12288};

// 8 positions to 3: windows of 3, 4 and 3 of them overlap, 10 in all along each dimension.
Call adaptive(std::string name, int dims) {
  return Call(std::move(name)).in("self", fp32, pooling_sizes(dims, 8)).out(fp32, pooling_sizes(dims, 3));
}
constexpr Expected kAdaptive1d = {.flops = 6 * 10, .read = 192, .write = 72};
constexpr Expected kAdaptive2d = {.flops = 6 * 100, .read = 1536, .write = 216};
constexpr Expected kAdaptive3d = {.flops = 6 * 1000, .read = 12288, .write = 648};

Call adaptive_backward(std::string name, int dims) {
  return Call(std::move(name))
      .in("grad_output", fp32, pooling_sizes(dims, 3))
      .in("self", fp32, pooling_sizes(dims, 8))
      .out(fp32, pooling_sizes(dims, 8));
}

// 8 -> 16 positions along each dimension, and back.
Call upsample(std::string name, int dims) {
  return Call(std::move(name)).in("self", fp32, pooling_sizes(dims, 8)).out(fp32, pooling_sizes(dims, 16));
}
Call upsample_backward(std::string name, int dims) {
  return Call(std::move(name)).in("grad_output", fp32, pooling_sizes(dims, 16)).out(fp32, pooling_sizes(dims, 8));
}
Expected upsampled(int dims, std::int64_t flops_per_output) {
  const std::int64_t in = 6 * (std::int64_t{1} << (3 * dims));
  const std::int64_t out = 6 * (std::int64_t{1} << (4 * dims));
  return {.flops = flops_per_output * out, .read = 4 * in, .write = 4 * out};
}
Expected upsampled_backward(int dims, std::int64_t flops_per_gradient) {
  const Expected forward = upsampled(dims, flops_per_gradient);
  return {.flops = forward.flops, .read = forward.write, .write = forward.read};
}

// 8 x 8 -> 4 x 6 with antialiasing: filters of 2 reach over 4 rows and ceil(2 * 8 / 6) = 3 columns. 6 * 8 * 6 values
// after the columns, 6 * 4 * 6 after the rows.
Call antialiased(std::string name) {
  return Call(std::move(name)).in("self", fp32, pooling_sizes(2, 8)).out(fp32, {2, 3, 4, 6});
}
Call antialiased_backward(std::string name) {
  return Call(std::move(name), "(grad_output fp32 2x3x4x6)").out(fp32, pooling_sizes(2, 8));
}
Expected antialiased_cost(std::int64_t per_column_value, std::int64_t per_row_value, bool backward = false) {
  const std::int64_t flops = 288 * per_column_value + 144 * per_row_value;
  return {.flops = flops, .read = backward ? 576 : 1536, .write = backward ? 1536 : 576};
}

// 5 x 5 points for each of 2 images of 3 channels: 150 outputs. In 3-d 5 x 5 x 5 points: 750.
Call sample(std::string name, int dims, std::int64_t mode) {
  Sizes grid = pooling_sizes(dims, 5);
  grid.erase(grid.begin() + 1);
  grid.push_back(dims);
  return Call(std::move(name))
      .in("input", fp32, pooling_sizes(dims, 8))
      .in("grid", fp32, grid)
      .scalar("interpolation_mode", mode)
      .out(fp32, pooling_sizes(dims, 5));
}
// At 50 locations, for 3 channels each.
Expected sampled2d(std::int64_t flops_per_output, std::int64_t flops_per_location) {
  return {.flops = 150 * flops_per_output + 50 * flops_per_location, .read = 1536 + 400, .write = 600};
}
Call sample_backward(std::string name, std::int64_t mode, Sizes mask) {
  return Call(std::move(name), "(grad_output fp32 2x3x5x5)")
      .in("input", fp32, pooling_sizes(2, 8))
      .in("grid", fp32, {2, 5, 5, 2})
      .scalar("interpolation_mode", mode)
      .scalar("output_mask", mask);
}

std::vector<CostCase> pooling_cases() {
  return {
      {pool("aten::max_pool1d", 1), kPool1d},
      {pool("aten::max_pool2d", 2), kPool2d},
      // One size for both dimensions; the shapes of kernel 2, stride 2, but kernel 3 with padding.
      {Call("aten::max_pool2d(self fp32 2x3x8x8, kernel_size=[3]) -> fp32 2x3x4x4"), {.flops = 96 * 9}},
      {Call("aten::max_pool2d(self fp32 3x8x8, kernel_size=[2,4]) -> fp32 3x4x2"), {.flops = 24 * 8}},
      {pool("aten::max_pool3d", 3), kPool3d},

      {Call("aten::max_pool2d_backward(grad_output fp32 2x3x4x4, self fp32 2x3x8x8) -> fp32 2x3x8x8"), {.flops = 96}},
      // Gradients of outputs and indices of 8 bytes are read, the input is not.
      {Call("aten::max_pool2d_with_indices_backward(grad_output fp32 2x3x4x4, self fp32 2x3x8x8, indices int64 "
            "2x3x4x4) -> fp32 2x3x8x8"),
       {.flops = 96, .read = 3 * 384, .write = 1536}},
      {average_backward("aten::avg_pool2d_backward", 2), kAverageBackward2d},
      {average_backward("aten::avg_pool3d_backward", 3), kAverageBackward3d},
      {Call("aten::max_unpool2d(self fp32 2x3x4x4, indices int64 2x3x4x4) -> fp32 2x3x8x8"),
       {.read = 3 * 384, .write = 1536}},

      {adaptive("aten::adaptive_avg_pool1d", 1), kAdaptive1d},
      {adaptive("aten::adaptive_avg_pool2d", 2), kAdaptive2d},
      // To one position: every element once.
      {Call("aten::adaptive_avg_pool2d(self fp32 3x7x5) -> fp32 3x1x1"), {.flops = 105}},
      {adaptive("aten::adaptive_avg_pool3d", 3), kAdaptive3d},
      {adaptive_backward("aten::_adaptive_avg_pool2d_backward", 2), {.flops = 600 + 54, .read = 216, .write = 1536}},
      {adaptive_backward("aten::_adaptive_avg_pool3d_backward", 3), {.flops = 6000 + 162, .read = 648, .write = 12288}},

      {upsample_backward("aten::upsample_nearest1d_backward", 1), upsampled_backward(1, 1)},
      {upsample("aten::upsample_linear1d", 1), upsampled(1, 2 + 1)},
      {upsample("aten::upsample_bilinear2d", 2), upsampled(2, 4 + 3)},
      {upsample("aten::upsample_trilinear3d", 3), upsampled(3, 8 + 7)},
      {upsample("aten::upsample_bicubic2d", 2), upsampled(2, 16 + 15)},
      {upsample_backward("aten::upsample_linear1d_backward", 1), upsampled_backward(1, 4)},
      {upsample_backward("aten::upsample_bilinear2d_backward", 2), upsampled_backward(2, 8)},
      {upsample_backward("aten::upsample_trilinear3d_backward", 3), upsampled_backward(3, 16)},
      {upsample_backward("aten::upsample_bicubic2d_backward", 2), upsampled_backward(2, 32)},
      {antialiased("aten::_upsample_bilinear2d_aa"), antialiased_cost(3 + 2, 4 + 3)},
      {antialiased("aten::_upsample_bicubic2d_aa"), antialiased_cost(6 + 5, 8 + 7)},
      {antialiased("aten::_upsample_lanczos2d_aa"), antialiased_cost(8 + 7, 12 + 11)},
      {antialiased_backward("aten::_upsample_bilinear2d_aa_backward"), antialiased_cost(6, 8, true)},
      {antialiased_backward("aten::_upsample_bicubic2d_aa_backward"), antialiased_cost(12, 16, true)},
      {antialiased_backward("aten::_upsample_lanczos2d_aa_backward"), antialiased_cost(16, 24, true)},

      {sample("aten::grid_sampler", 2, 0), sampled2d(7, 26)},
      {sample("aten::grid_sampler", 3, 0), {.flops = 750 * 15 + 250 * 49}},
      {sample("aten::grid_sampler_2d", 2, 0), sampled2d(7, 26)},
      {sample("aten::grid_sampler_2d", 2, 1), sampled2d(0, 14)},
      {sample("aten::grid_sampler_2d", 2, 2), sampled2d(31, 76)},
      {sample("aten::grid_sampler_3d", 3, 0), {.flops = 750 * 15 + 250 * 49}},
      {sample("aten::cudnn_grid_sampler", 2, 0), sampled2d(7, 26)},
      {Call("aten::cudnn_grid_sampler_backward(self fp32 2x3x8x8, grid fp32 2x5x5x2, grad_output fp32 2x3x5x5) -> fp32 "
            "2x3x8x8, fp32 2x5x5x2"),
       {.flops = 150 * (8 + 16) + 50 * 26}},
      {sample_backward("aten::grid_sampler_2d_backward", 0, {1, 1})
           .out(fp32, pooling_sizes(2, 8))
           .out(fp32, {2, 5, 5, 2}),
       {.flops = 150 * (8 + 16) + 50 * 26, .read = 600 + 400 + 1536, .write = 1536 + 400}},
      {sample_backward("aten::grid_sampler_2d_backward", 0, {1, 0}).out(fp32, pooling_sizes(2, 8)),
       {.flops = 150 * 8 + 50 * 26, .read = 600 + 400, .write = 1536}},
      {sample_backward("aten::grid_sampler_2d_backward", 1, {1, 1})
           .out(fp32, pooling_sizes(2, 8))
           .out(fp32, {2, 5, 5, 2}),
       {.flops = 150 + 50 * 14, .read = 600 + 400 + 1536, .write = 1536 + 400}},
      {Call("aten::grid_sampler_3d_backward(grad_output fp32 2x3x5x5x5, input fp32 2x3x8x8x8, grid fp32 2x5x5x5x3, "
            "interpolation_mode=0, output_mask=[0,1]) -> none, fp32 2x5x5x5x3"),
       {.flops = 750 * 16 * 3 + 250 * 49, .read = 3000 + 3000 + 12288, .write = 3000}},
  };
}

TEST(Pooling, Costs) { check_family(pooling_costs(), pooling_cases()); }

}  // namespace
}  // namespace roofprof::ops::testing
