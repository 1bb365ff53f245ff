#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

CostCase nms(std::int64_t boxes, std::int64_t flops) {
  return {Call("torchvision::nms").in("dets", fp32, {boxes, 4}).in("scores", fp32, {boxes}).out(int64, {1}),
          {.flops = flops, .read_bytes = boxes * 20, .write_bytes = 8}};
}

// 3 regions of 7 x 7 bins from a feature map of 16 x 20 x 20: 2352 bins of 16 channels.
CostCase roi_align(int sampling_ratio, std::int64_t samples) {
  return {Call("torchvision::roi_align")
              .in("input", fp32, {1, 16, 20, 20})
              .in("rois", fp32, {3, 5})
              .scalar("sampling_ratio", sampling_ratio)
              .out(fp32, {3, 16, 7, 7}),
          {.flops = 2352 * (8 * samples + 1), .read_bytes = 25'600 + 60, .write_bytes = 2352 * 4}};
}

const std::vector<CostCase> kCases = {
    // 10 boxes: 45 pairs, 4 levels of sorting.
    nms(10, 13 * 45 + 10 * (3 + 4)),
    nms(1, 3),
    nms(0, 0),
    roi_align(2, 4),
    roi_align(0, 1),
    // A large map: 4 pixels for each of 2352 samples.
    {Call("torchvision::roi_align")
         .in("input", fp32, {1, 16, 200, 200})
         .in("rois", fp32, {3, 5})
         .scalar("sampling_ratio", 1)
         .out(fp32, {3, 16, 7, 7}),
     {.flops = 2352 * 9, .read_bytes = 2352 * 4 * 4 + 60, .write_bytes = 2352 * 4}},
    {Call("torchvision::_roi_align_backward")
         .in("grad", fp32, {3, 16, 7, 7})
         .in("rois", fp32, {3, 5})
         .scalar("sampling_ratio", 2)
         .out(fp32, {1, 16, 20, 20}),
     {.flops = 2352 * 33, .read_bytes = 2352 * 4 + 60, .write_bytes = 25'600}},
    // Position sensitive: 4 x 2 x 2 input channels make 4.
    {Call("torchvision::ps_roi_align")
         .in("input", fp32, {1, 16, 20, 20})
         .in("rois", fp32, {3, 5})
         .scalar("sampling_ratio", 2)
         .out(fp32, {3, 4, 2, 2})
         .out(int32, {3, 4, 2, 2}),
     {.flops = 48 * 33, .read_bytes = 48 * 4 * 4 * 4 + 60, .write_bytes = 48 * 8}},
    {Call("torchvision::_ps_roi_align_backward")
         .in("grad", fp32, {3, 4, 2, 2})
         .in("rois", fp32, {3, 5})
         .in("channel_mapping", int32, {3, 4, 2, 2})
         .scalar("sampling_ratio", 2)
         .out(fp32, {1, 16, 20, 20}),
     {.flops = 48 * 33, .read_bytes = 48 * 8 + 60, .write_bytes = 25'600}},
    {Call("torchvision::roi_pool")
         .in("input", fp32, {1, 16, 20, 20})
         .in("rois", fp32, {3, 5})
         .out(fp32, {3, 16, 7, 7})
         .out(int32, {3, 16, 7, 7}),
     {.flops = 2352, .read_bytes = 25'600 + 60, .write_bytes = 2352 * 8}},
    {Call("torchvision::_roi_pool_backward")
         .in("grad", fp32, {3, 16, 7, 7})
         .in("rois", fp32, {3, 5})
         .in("argmax", int32, {3, 16, 7, 7})
         .out(fp32, {1, 16, 20, 20}),
     {.flops = 2352, .read_bytes = 2352 * 8 + 60, .write_bytes = 25'600}},
    {Call("torchvision::ps_roi_pool")
         .in("input", fp32, {1, 16, 20, 20})
         .in("rois", fp32, {3, 5})
         .out(fp32, {3, 4, 2, 2})
         .out(int32, {3, 4, 2, 2}),
     {.flops = 96, .read_bytes = 25'600 + 60, .write_bytes = 48 * 8}},
    {Call("torchvision::_ps_roi_pool_backward")
         .in("grad", fp32, {3, 4, 2, 2})
         .in("rois", fp32, {3, 5})
         .in("channel_mapping", int32, {3, 4, 2, 2})
         .out(fp32, {1, 16, 20, 20}),
     {.flops = 96, .read_bytes = 48 * 8 + 60, .write_bytes = 25'600}},
    // 4 -> 6 channels in 2 groups, 3 x 3, on 5 x 5 positions: 6 * 25 outputs of 2 * 9 MACs; 4 * 9 * 25 columns.
    {Call("torchvision::deform_conv2d")
         .in("input", fp32, {1, 4, 5, 5})
         .in("weight", fp32, {6, 2, 3, 3})
         .in("offset", fp32, {1, 18, 5, 5})
         .in("mask", fp32, {1, 9, 5, 5})
         .in("bias", fp32, {6})
         .scalar("use_mask", true)
         .out(fp32, {1, 6, 5, 5}),
     {.macs = 150 * 18,
      .flops = 2 * 150 * 18 + 9 * 900 + 150,
      .read_bytes = (100 + 108 + 450 + 225 + 6) * 4,
      .write_bytes = 600}},
    {Call("torchvision::_deform_conv2d_backward")
         .in("grad", fp32, {1, 6, 5, 5})
         .in("input", fp32, {1, 4, 5, 5})
         .in("weight", fp32, {6, 2, 3, 3})
         .in("offset", fp32, {1, 18, 5, 5})
         .in("mask", fp32, {1, 0, 5, 5})
         .in("bias", fp32, {6})
         .scalar("use_mask", false)
         .out(fp32, {1, 4, 5, 5})
         .out(fp32, {6, 2, 3, 3})
         .out(fp32, {1, 18, 5, 5})
         .out(fp32, {1, 0, 5, 5})
         .out(fp32, {6}),
     {.macs = 2 * 150 * 18,
      .flops = 4 * 150 * 18 + 34 * 900 + 150,
      .read_bytes = (150 + 100 + 108 + 450 + 6) * 4,
      .write_bytes = (100 + 108 + 450 + 6) * 4}},
};

TEST(Vision, CostsAreAsWrittenOut) { check_family(vision_costs(), kCases); }

}  // namespace
}  // namespace roofprof::ops
