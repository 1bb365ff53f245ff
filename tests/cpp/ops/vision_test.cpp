#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

CostCase nms(std::int64_t boxes, std::int64_t flops) {
  return {Call("torchvision::nms").in("dets", fp32, {boxes, 4}).in("scores", fp32, {boxes}).out(int64, {1}),
          {.flops = flops}};
}

// 3 regions of 7 x 7 bins from a feature map of 16 x 20 x 20: 2352 bins of 16 channels.
CostCase roi_align(int sampling_ratio, std::int64_t samples) {
  return {Call("torchvision::roi_align(input fp32 1x16x20x20, rois fp32 3x5)")
              .scalar("sampling_ratio", sampling_ratio)
              .out(fp32, {3, 16, 7, 7}),
          {.flops = 2352 * (8 * samples + 1), .read = 25'600 + 60, .write = 2352 * 4}};
}

const std::vector<CostCase> kVisionCases = {
    // 10 boxes: 45 pairs, 4 levels of sorting.
    nms(10, 13 * 45 + 10 * (3 + 4)),
    nms(1, 3),
    nms(0, 0),
    roi_align(2, 4),
    roi_align(0, 1),
    // A large map: 4 pixels for each of 2352 samples.
    {Call("torchvision::roi_align(input fp32 1x16x200x200, rois fp32 3x5, sampling_ratio=1) -> fp32 3x16x7x7"),
     {.flops = 2352 * 9, .read = 2352 * 4 * 4 + 60, .write = 2352 * 4}},
    {Call("torchvision::_roi_align_backward(grad fp32 3x16x7x7, rois fp32 3x5, sampling_ratio=2) -> fp32 1x16x20x20"),
     {.flops = 2352 * 33}},
    // Position sensitive: 4 x 2 x 2 input channels make 4.
    {Call("torchvision::ps_roi_align(input fp32 1x16x20x20, rois fp32 3x5, sampling_ratio=2) -> fp32 3x4x2x2, int32 "
          "3x4x2x2"),
     {.flops = 48 * 33, .read = 48 * 4 * 4 * 4 + 60, .write = 48 * 8}},
    {Call("torchvision::roi_pool(input fp32 1x16x20x20, rois fp32 3x5) -> fp32 3x16x7x7, int32 3x16x7x7"),
     {.flops = 2352}},
    {Call("torchvision::_roi_pool_backward(grad fp32 3x16x7x7, rois fp32 3x5, argmax int32 3x16x7x7) -> fp32 "
          "1x16x20x20"),
     {.flops = 2352}},
    {Call("torchvision::ps_roi_pool(input fp32 1x16x20x20, rois fp32 3x5) -> fp32 3x4x2x2, int32 3x4x2x2"),
     {.flops = 96}},
    {Call("torchvision::_ps_roi_pool_backward(grad fp32 3x4x2x2, rois fp32 3x5, channel_mapping int32 3x4x2x2) -> fp32 "
          "1x16x20x20"),
     {.flops = 96}},
    // 4 -> 6 channels in 2 groups, 3 x 3, on 5 x 5 positions: 6 * 25 outputs of 2 * 9 MACs; 4 * 9 * 25 columns.
    {Call("torchvision::deform_conv2d(input fp32 1x4x5x5, weight fp32 6x2x3x3, offset fp32 1x18x5x5, mask fp32 "
          "1x9x5x5, bias fp32 6, use_mask=true) -> fp32 1x6x5x5"),
     {.macs = 150 * 18, .flops = 2 * 150 * 18 + 9 * 900 + 150}},
    {Call("torchvision::_deform_conv2d_backward(grad fp32 1x6x5x5, input fp32 1x4x5x5, weight fp32 6x2x3x3, offset "
          "fp32 1x18x5x5, mask fp32 1x0x5x5, bias fp32 6, use_mask=false) -> fp32 1x4x5x5, fp32 6x2x3x3, fp32 "
          "1x18x5x5, fp32 1x0x5x5, fp32 6"),
     {.macs = 2 * 150 * 18, .flops = 4 * 150 * 18 + 34 * 900 + 150}},
};

TEST(Vision, CostsAreAsWrittenOut) { check_family(vision_costs(), kVisionCases); }

}  // namespace
}  // namespace roofprof::ops
