// torchvision's own operators: boxes, regions of interest, deformable convolution.

#include <algorithm>
#include <bit>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// A value between four pixels: four multiplications, four additions (three to sum up, one into the result).
constexpr std::int64_t kSample = 8;

// All pairs of boxes: 2 max and 2 min for the corners of the intersection, 2 subtractions and 2 clamps for its sides,
// its area 1, the union 2, their ratio 1, a comparison. Which boxes drop out, and so spare their pairs, is in the
// values: this is the most there can be.
void nms(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc& boxes = call.tensor("dets");
  const std::int64_t n = boxes.size(0);
  const std::int64_t pairs = saturating_multiply(n, n - 1) / 2;
  const std::int64_t levels = n <= 1 ? 0 : static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
  add_operations(work, saturating_multiply(weight, pairs), boxes.dtype);
  add_operations(work, saturating_multiply(3 + levels, n), boxes.dtype);
}

// Sampling points in each bin. Where their number follows the region's size (sampling_ratio <= 0) it is in the values:
// one is the least.
std::int64_t samples_per_bin(const OpCall& call) {
  const std::int64_t ratio = std::max<std::int64_t>(call.integer("sampling_ratio", 1), 1);
  return ratio * ratio;
}

// Per bin: the samples, and a division for their mean. Going back, the same the other way round.
void roi_align(const OpCall& call, std::int64_t weight, Work& work) {
  per_output(call, samples_per_bin(call) * weight + 1, work);
}

void roi_align_backward(const OpCall& call, std::int64_t weight, Work& work) {
  per_input(call, samples_per_bin(call) * weight + 1, work);
}

// Each sample looks at four pixels: few regions do not read the whole feature map.
void roi_align_bytes(const OpCall& call, Work& work) {
  const TensorDesc& input = call.tensor("input");
  const std::int64_t pixels = product({4, samples_per_bin(call), call.result().numel()});
  work.read_bytes = saturating_multiply(std::min(pixels, input.held_numel()), input.item_bytes);
  read(work, call.find_tensor("rois"));
  write_results(call, work);
}

// MACs as in a dense convolution; before them every input of every window is sampled, and scaled by the mask.
void deform_conv2d(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc& input = call.tensor("input");
  const TensorDesc& kernel = call.tensor("weight");
  const TensorDesc& output = call.result();
  const std::int64_t area = saturating_multiply(kernel.size(2), kernel.size(3));
  const std::int64_t positions = product({output.size(0), output.size(2), output.size(3)});
  const std::int64_t columns = product({input.size(1), area, positions});
  const std::int64_t masked = call.boolean("use_mask", false) ? 1 : 0;
  add_macs(work, product({output.numel(), kernel.size(1), area}), input);
  add_operations(work, saturating_multiply(weight + masked, columns), input.dtype);
  per_output(call, 1, work);
}

// The gradients of columns and weight cost the forward's MACs each. Per column element: sampled again (8), spread over
// four pixels (8), and for the two offsets the bilinear slope times the gradient (9 each).
void deform_backward(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc& input = call.tensor("input");
  const TensorDesc& kernel = call.tensor("weight");
  const TensorDesc& grad = call.tensor("grad");
  const std::int64_t area = saturating_multiply(kernel.size(2), kernel.size(3));
  const std::int64_t positions = product({grad.size(0), grad.size(2), grad.size(3)});
  const std::int64_t columns = product({input.size(1), area, positions});
  const std::int64_t masked = call.boolean("use_mask", false) ? 4 : 0;
  add_macs(work, product({2, grad.numel(), kernel.size(1), area}), input);
  add_operations(work, saturating_multiply(weight + masked, columns), input.dtype);
  per_input(call, 1, work);
}

constexpr OpCost kVisionCosts[] = {
    {"torchvision::nms", nms, 13, nullptr, "", "at most 13 per pair of boxes; areas 3 n, sorting n log2 n"},
    {"torchvision::roi_align", roi_align, kSample, roi_align_bytes, "sampling_ratio", "8 per sample, 1 per bin"},
    {"torchvision::ps_roi_align", roi_align, kSample, roi_align_bytes, "sampling_ratio", "as roi_align"},
    {"torchvision::_roi_align_backward torchvision::_ps_roi_align_backward", roi_align_backward, kSample, nullptr,
     "sampling_ratio", "as roi_align"},
    {"torchvision::roi_pool", per_output, 1, nullptr, "", "at least one comparison per bin"},
    {"torchvision::_roi_pool_backward", per_input, 1, nullptr, "", "one addition per bin"},
    {"torchvision::ps_roi_pool", per_output, 2, nullptr, "", "at least an addition and a division per bin"},
    {"torchvision::_ps_roi_pool_backward", per_input, 2, nullptr, "", "at least an addition and a division per bin"},
    {"torchvision::deform_conv2d", deform_conv2d, kSample, nullptr, "use_mask", "conv2d; per column 8, mask 1; bias 1"},
    {"torchvision::_deform_conv2d_backward", deform_backward, 34, nullptr, "use_mask", "2 conv2d; 34 per column"},
};

}  // namespace

std::span<const OpCost> vision_costs() { return kVisionCosts; }

}  // namespace roofprof::ops
