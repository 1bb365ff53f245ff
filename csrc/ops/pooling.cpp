// Pooling, upsampling and grid sampling: one operation per window element, 2 x taps - 1 per interpolated value.

#include <algorithm>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- pooling; the line's weight is the number of spatial dimensions

// Elements of a window; a single size stands for all dimensions.
std::int64_t window(const OpCall& call, std::int64_t spatial_dims) {
  const std::vector<std::int64_t> kernel = call.integers("kernel_size");
  if (kernel.size() != 1) return product(kernel);
  return product(std::vector<std::int64_t>(static_cast<std::size_t>(spatial_dims), kernel.front()));
}

// A comparison for each window element (maximum), or an addition for each but one and a division (mean).
void pool(const OpCall& call, std::int64_t spatial_dims, Work& work) {
  const std::int64_t outputs = call.result().numel();
  add_operations(work, saturating_multiply(outputs, window(call, spatial_dims)), call.compute_dtype());
}

// A division, then an addition to each element of the window.
void average_backward(const OpCall& call, std::int64_t spatial_dims, Work& work) {
  const TensorDesc& grad = call.tensor("grad_output");
  add_operations(work, saturating_multiply(grad.numel(), window(call, spatial_dims) + 1), grad.dtype);
}

// Adaptive windows differ in size: output i covers floor(i * in / out) to ceil((i + 1) * in / out). Summed over one
// channel.
std::int64_t covered(const TensorDesc& input, const TensorDesc& output, std::int64_t spatial_dims) {
  std::int64_t total = 1;
  for (int dim = 1; dim <= spatial_dims; ++dim) {
    const std::int64_t in = input.size(-dim);
    const std::int64_t out = output.size(-dim);
    std::int64_t lengths = 0;
    for (std::int64_t i = 0; i < out; ++i) lengths += ((i + 1) * in + out - 1) / out - i * in / out;
    total = saturating_multiply(total, lengths);
  }
  return total;
}

std::int64_t channels(const TensorDesc& tensor, std::int64_t spatial_dims) {
  std::int64_t count = 1;
  for (int dim = 0; dim < tensor.dim() - spatial_dims; ++dim) count = saturating_multiply(count, tensor.size(dim));
  return count;
}

void adaptive_pool(const OpCall& call, std::int64_t spatial_dims, Work& work) {
  const TensorDesc& input = call.tensor("self");
  const std::int64_t elements = covered(input, call.result(), spatial_dims);
  add_operations(work, saturating_multiply(channels(input, spatial_dims), elements), input.dtype);
}

void adaptive_average_backward(const OpCall& call, std::int64_t spatial_dims, Work& work) {
  const TensorDesc& grad = call.tensor("grad_output");
  const std::int64_t elements = covered(call.tensor("self"), grad, spatial_dims);
  add_operations(work, saturating_multiply(channels(grad, spatial_dims), elements), grad.dtype);
  add_operations(work, grad.numel(), grad.dtype);
}

// ---- interpolation; the line's weight is the number of neighbours

// A multiplication for each neighbour, and they are added up.
void interpolate(const OpCall& call, std::int64_t taps, Work& work) { per_output(call, 2 * taps - 1, work); }

// Each gradient is multiplied for, and added to, each neighbour.
void interpolate_backward(const OpCall& call, std::int64_t taps, Work& work) { per_input(call, 2 * taps, work); }

// Antialiased: along one dimension after the other, the filter (2 for linear, 4 for cubic, 6 for Lanczos) widened by
// the factor that the image shrinks by.
std::int64_t antialiased_taps(const TensorDesc& large, const TensorDesc& small, int dim, std::int64_t filter) {
  const std::int64_t in = large.size(dim);
  const std::int64_t out = small.size(dim);
  return out == 0 || in <= out ? filter : (filter * in + out - 1) / out;
}

// Columns first: (input height x output width) values, then (output height x output width).
void add_antialiased(const TensorDesc& input, const TensorDesc& output, std::int64_t filter, std::int64_t saved,
                     Work& work) {
  const std::int64_t planes = channels(input, 2);
  const std::int64_t across = 2 * antialiased_taps(input, output, -1, filter) - saved;
  const std::int64_t down = 2 * antialiased_taps(input, output, -2, filter) - saved;
  add_operations(work, product({planes, input.size(-2), output.size(-1), across}), input.dtype);
  add_operations(work, product({planes, output.size(-2), output.size(-1), down}), input.dtype);
}

void antialias(const OpCall& call, std::int64_t filter, Work& work) {
  add_antialiased(call.tensor(std::size_t{0}), call.result(), filter, 1, work);
}

void antialias_backward(const OpCall& call, std::int64_t filter, Work& work) {
  add_antialiased(call.result(), call.tensor("grad_output"), filter, 0, work);
}

// ---- grid sampling; the line's weight is the number of spatial dimensions

// interpolation_mode 0 is linear, 1 nearest, 2 cubic.
bool is_cubic(const OpCall& call) { return call.integer("interpolation_mode", 0) == 2; }
bool is_nearest(const OpCall& call) { return call.integer("interpolation_mode", 0) == 1; }

std::int64_t grid_taps(const OpCall& call, std::int64_t spatial_dims) {
  const std::int64_t along = is_cubic(call) ? 4 : 2;
  return product(std::vector<std::int64_t>(static_cast<std::size_t>(spatial_dims), along));
}

// Returns the operations that each location of the grid takes once for all channels. Along each dimension: the
// coordinate in pixels 4, rounded 1, and for each tap's index 2 comparisons with the image's bounds; between pixels
// also the distance 1 and the taps' weights (linear 1, cubic four polynomials 24). Then linear weights are multiplied
// over the dimensions.
std::int64_t per_linear_location(std::int64_t spatial_dims) {
  const std::int64_t taps = std::int64_t{1} << spatial_dims;
  return spatial_dims * (4 + 1 + 2 * 2 + 1 + 1) + (spatial_dims - 1) * taps;
}

std::int64_t per_location(const OpCall& call, std::int64_t spatial_dims) {
  if (is_nearest(call)) return spatial_dims * (4 + 1 + 2);
  return is_cubic(call) ? spatial_dims * (4 + 1 + 4 * 2 + 1 + 24) : per_linear_location(spatial_dims);
}

void add_locations(const OpCall& call, std::int64_t spatial_dims, std::int64_t each, Work& work) {
  const TensorDesc& grid = call.tensor("grid");
  add_operations(work, saturating_multiply(grid.numel() / spatial_dims, each), grid.dtype);
}

void sample_grid(const OpCall& call, std::int64_t spatial_dims, Work& work) {
  add_locations(call, spatial_dims, per_location(call, spatial_dims), work);
  if (!is_nearest(call)) per_output(call, 2 * grid_taps(call, spatial_dims) - 1, work);
}

// The dispatching operator serves both: the grid's last dimension says which.
void sample_any_grid(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  sample_grid(call, call.tensor("grid").size(-1), work);
}

void sample_grid_backward(const OpCall& call, std::int64_t spatial_dims, Work& work) {
  const std::int64_t per_tap = 2 * grid_taps(call, spatial_dims);
  const std::int64_t of_input = is_nearest(call) ? 1 : per_tap;
  const std::int64_t of_grid = is_nearest(call) ? 0 : per_tap * spatial_dims;
  add_locations(call, spatial_dims, per_location(call, spatial_dims), work);
  per_input(call, (wants_gradient(call, 0) ? of_input : 0) + (wants_gradient(call, 1) ? of_grid : 0), work);
}

// cuDNN's is always linear in two dimensions, and makes both gradients: the input's, and two coordinates'.
void cudnn_sample_grid(const OpCall& call, std::int64_t taps, Work& work) {
  add_locations(call, 2, per_linear_location(2), work);
  interpolate(call, taps, work);
}

void cudnn_sample_grid_backward(const OpCall& call, std::int64_t taps, Work& work) {
  const TensorDesc& grad = call.tensor("grad_output");
  add_locations(call, 2, per_linear_location(2), work);
  add_operations(work, product({grad.numel(), 2 * taps, 3}), grad.dtype);
}

// ---- CountBytes

// The input gives its shape only.
void scattered_bytes(const OpCall& call, Work& work) {
  read(work, call.find_tensor("grad_output"));
  read(work, call.find_tensor("indices"));
  write_results(call, work);
}

// Image values are needed for the gradient of the grid alone.
void grid_backward_bytes(const OpCall& call, Work& work) {
  read(work, call.find_tensor("grad_output"));
  read(work, call.find_tensor("grid"));
  if (wants_gradient(call, 1)) read(work, call.find_tensor("input"));
  write_results(call, work);
}

constexpr const char* kPool = "1 per window element, for each output";
constexpr const char* kMaxBackward = "1 addition per output gradient";
constexpr const char* kAverageBackward = "division 1, addition 1 per window element, for each output gradient";
constexpr const char* kAdaptive = "1 per window element, windows counted one by one";
constexpr const char* kNearest = "copies";
constexpr const char* kNearestBackward = "1 addition per output gradient";
constexpr const char* kInterpolate = "2 x neighbours - 1 per output";
constexpr const char* kInterpolateBackward = "2 x neighbours per output gradient";
constexpr const char* kAntialias = "along each dimension 2 x filter length - 1 per value";
constexpr const char* kAntialiasBackward = "along each dimension 2 x filter length per value";
constexpr const char* kGrid = "2 x neighbours - 1 per output, nearest 0; per location 26 in 2-d, nearest 14, cubic 76";
constexpr const char* kGridBackward =
    "2 x neighbours per output gradient for the input, and for each grid coordinate; per location as forward";

constexpr OpCost kPoolingCosts[] = {
    {"aten::max_pool1d aten::max_pool1d_with_indices aten::quantized_max_pool1d aten::avg_pool1d", pool, 1, nullptr,
     "kernel_size", kPool},
    {"aten::max_pool2d aten::max_pool2d_with_indices aten::mkldnn_max_pool2d aten::quantized_max_pool2d "
     "aten::fractional_max_pool2d aten::avg_pool2d",
     pool, 2, nullptr, "kernel_size", kPool},
    {"aten::max_pool3d aten::max_pool3d_with_indices aten::mkldnn_max_pool3d aten::quantized_max_pool3d "
     "aten::fractional_max_pool3d aten::avg_pool3d",
     pool, 3, nullptr, "kernel_size", kPool},

    {"aten::max_pool2d_backward aten::mkldnn_max_pool2d_backward aten::mkldnn_max_pool3d_backward", per_input, 1,
     nullptr, "", kMaxBackward},
    {"aten::max_pool2d_with_indices_backward aten::max_pool3d_with_indices_backward "
     "aten::fractional_max_pool2d_backward aten::fractional_max_pool3d_backward",
     per_input, 1, scattered_bytes, "", kMaxBackward},
    {"aten::avg_pool2d_backward", average_backward, 2, scattered_bytes, "kernel_size", kAverageBackward},
    {"aten::avg_pool3d_backward", average_backward, 3, scattered_bytes, "kernel_size", kAverageBackward},
    {"aten::max_unpool2d aten::max_unpool3d", no_operations, 0, nullptr, "", "copies"},

    {"aten::adaptive_avg_pool1d aten::adaptive_max_pool1d", adaptive_pool, 1, nullptr, "", kAdaptive},
    {"aten::adaptive_avg_pool2d aten::_adaptive_avg_pool2d aten::mkldnn_adaptive_avg_pool2d aten::adaptive_max_pool2d",
     adaptive_pool, 2, nullptr, "", kAdaptive},
    {"aten::adaptive_avg_pool3d aten::_adaptive_avg_pool3d aten::adaptive_max_pool3d", adaptive_pool, 3, nullptr, "",
     kAdaptive},
    {"aten::_adaptive_avg_pool2d_backward aten::mkldnn_adaptive_avg_pool2d_backward", adaptive_average_backward, 2,
     scattered_bytes, "", kAverageBackward},
    {"aten::_adaptive_avg_pool3d_backward", adaptive_average_backward, 3, scattered_bytes, "", kAverageBackward},
    {"aten::adaptive_max_pool2d_backward aten::adaptive_max_pool3d_backward", per_input, 1, scattered_bytes, "",
     kMaxBackward},

    {"aten::upsample_nearest1d aten::upsample_nearest2d aten::upsample_nearest3d aten::_upsample_nearest_exact1d "
     "aten::_upsample_nearest_exact2d aten::_upsample_nearest_exact3d",
     no_operations, 0, nullptr, "", kNearest},
    {"aten::upsample_nearest1d_backward aten::upsample_nearest2d_backward aten::upsample_nearest3d_backward "
     "aten::_upsample_nearest_exact1d_backward aten::_upsample_nearest_exact2d_backward "
     "aten::_upsample_nearest_exact3d_backward",
     per_input, 1, nullptr, "", kNearestBackward},

    {"aten::upsample_linear1d", interpolate, 2, nullptr, "", kInterpolate},
    {"aten::upsample_bilinear2d", interpolate, 4, nullptr, "", kInterpolate},
    {"aten::upsample_trilinear3d", interpolate, 8, nullptr, "", kInterpolate},
    {"aten::upsample_bicubic2d", interpolate, 16, nullptr, "", kInterpolate},
    {"aten::upsample_linear1d_backward", interpolate_backward, 2, nullptr, "", kInterpolateBackward},
    {"aten::upsample_bilinear2d_backward", interpolate_backward, 4, nullptr, "", kInterpolateBackward},
    {"aten::upsample_trilinear3d_backward", interpolate_backward, 8, nullptr, "", kInterpolateBackward},
    {"aten::upsample_bicubic2d_backward", interpolate_backward, 16, nullptr, "", kInterpolateBackward},
    {"aten::_upsample_bilinear2d_aa", antialias, 2, nullptr, "", kAntialias},
    {"aten::_upsample_bicubic2d_aa", antialias, 4, nullptr, "", kAntialias},
    {"aten::_upsample_lanczos2d_aa", antialias, 6, nullptr, "", kAntialias},
    {"aten::_upsample_bilinear2d_aa_backward", antialias_backward, 2, nullptr, "", kAntialiasBackward},
    {"aten::_upsample_bicubic2d_aa_backward", antialias_backward, 4, nullptr, "", kAntialiasBackward},
    {"aten::_upsample_lanczos2d_aa_backward", antialias_backward, 6, nullptr, "", kAntialiasBackward},

    {"aten::grid_sampler", sample_any_grid, 0, nullptr, "interpolation_mode", kGrid},
    {"aten::grid_sampler_2d aten::_grid_sampler_2d_cpu_fallback", sample_grid, 2, nullptr, "interpolation_mode", kGrid},
    {"aten::grid_sampler_3d", sample_grid, 3, nullptr, "interpolation_mode", kGrid},
    {"aten::cudnn_grid_sampler", cudnn_sample_grid, 4, nullptr, "", kGrid},
    {"aten::cudnn_grid_sampler_backward", cudnn_sample_grid_backward, 4, nullptr, "", kGridBackward},
    {"aten::grid_sampler_2d_backward", sample_grid_backward, 2, grid_backward_bytes, "interpolation_mode,output_mask",
     kGridBackward},
    {"aten::grid_sampler_3d_backward", sample_grid_backward, 3, grid_backward_bytes, "interpolation_mode,output_mask",
     kGridBackward},
};

}  // namespace

std::span<const OpCost> pooling_costs() { return kPoolingCosts; }

}  // namespace roofprof::ops
