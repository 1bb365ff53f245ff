#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

// Batch 2, 4 channels, 5 x 5, fp32: 200 elements of 800 bytes; one figure for each channel is 16 bytes.
const Sizes kImage = {2, 4, 5, 5};

Call batch_norm(std::string name, bool training, std::string flag = "training") {
  return Call(std::move(name),
              "(input fp32 2x4x5x5, weight fp32 4, bias fp32 4, running_mean fp32 4, running_var fp32 4)")
      .scalar(std::move(flag), training)
      .out(fp32, kImage);
}

constexpr Expected kTrained = {.flops = 6 * 200, .read = 800 + 64, .write = 800 + 32};  // running ones too
constexpr Expected kFolded = {.flops = 2 * 200, .read = 800 + 64, .write = 800};

Call saved(Call call) { return call.out(fp32, {4}).out(fp32, {4}); }

// Two images, weight and the two saved statistics are read.
Call batch_norm_backward(std::string name, bool training, Sizes mask, std::string flag = "train") {
  return Call(std::move(name),
              "(grad_out fp32 2x4x5x5, input fp32 2x4x5x5, weight fp32 4, running_mean none, running_var none, "
              "save_mean fp32 4, save_invstd fp32 4)")
      .scalar(std::move(flag), training)
      .scalar("output_mask", mask);
}
Call three_gradients(Call call) { return call.out(fp32, kImage).with("-> fp32 4, fp32 4"); }
constexpr Expected kTrainedBackward = {.flops = 7 * 200, .read = 1600 + 48, .write = 832};

// 6 rows of 8, fp16: 48 elements of 96 bytes, 16 bytes for a weight; statistics are one fp32 figure for each row.
Call rows(std::string name) { return Call(std::move(name), "(input fp16 6x8)"); }
Call rows_backward(std::string name, Sizes mask) {
  return Call(std::move(name), "(grad_out fp16 6x8, input fp16 6x8, rstd fp32 6x1, weight fp16 8)")
      .scalar("output_mask", mask);
}

Call softmax(std::string name) { return Call(std::move(name), "(self bf16 4x10) -> bf16 4x10"); }
constexpr Expected kSoftmax = {.flops = 5 * 40, .read = 80, .write = 80};

Call softmax_backward(std::string name) {
  return Call(std::move(name), "(grad_output bf16 4x10, output bf16 4x10) -> bf16 4x10");
}

std::vector<CostCase> normalization_cases() {
  return {
      {batch_norm("aten::batch_norm", true), kTrained},
      {batch_norm("aten::batch_norm", false), kFolded},
      {Call("aten::batch_norm(input bf16 2x4x5x5, weight none, bias none, running_mean none, running_var none, "
            "training=true) -> bf16 2x4x5x5"),
       {.flops = 1200, .read = 400, .write = 400}},
      // Here the schema says that the running statistics are written.
      {Call("aten::_native_batch_norm_legit(input fp32 2x4x5x5, weight fp32 4, bias fp32 4, running_mean fp32 4 "
            "written, running_var fp32 4 written, training=true) -> fp32 2x4x5x5"),
       kTrained},
      // And here they are results.
      {saved(batch_norm("aten::_native_batch_norm_legit_functional", true)), kTrained},
      {batch_norm("aten::_native_batch_norm_legit_no_training", false), kFolded},
      {batch_norm("aten::_batch_norm_with_update", true), kTrained},
      {saved(batch_norm("aten::_batch_norm_with_update_functional", true)), kTrained},
      {three_gradients(batch_norm_backward("aten::native_batch_norm_backward", true, {1, 1, 1})), kTrainedBackward},
      // Frozen weights still need both sums; frozen statistics need none.
      {batch_norm_backward("aten::native_batch_norm_backward", true, {1, 0, 0}).out(fp32, kImage), {.flops = 7 * 200}},
      {batch_norm_backward("aten::native_batch_norm_backward", false, {1, 0, 0}).out(fp32, kImage), {.flops = 200}},
      {three_gradients(batch_norm_backward("aten::native_batch_norm_backward", false, {1, 1, 1})),
       {.flops = (1 + 2 + 1) * 200}},
      {three_gradients(batch_norm_backward("aten::batch_norm_backward", true, {1, 1, 1}, "update")), kTrainedBackward},
      {Call("aten::cudnn_batch_norm_backward(input fp32 2x4x5x5, grad_output fp32 2x4x5x5, weight fp32 4, save_mean "
            "fp32 4, save_var fp32 4) -> fp32 2x4x5x5, fp32 4, fp32 4"),
       kTrainedBackward},
      {Call("aten::batch_norm_stats(input fp32 2x4x5x5) -> fp32 4, fp32 4"), {.flops = 800}},
      {Call("aten::batch_norm_update_stats(input fp32 2x4x5x5, running_mean fp32 4, running_var fp32 4) -> fp32 4, "
            "fp32 4"),
       {.flops = 800, .read = 832, .write = 64}},
      // Three processes.
      {Call("aten::batch_norm_gather_stats(input fp32 2x4x5x5, mean fp32 3x4, invstd fp32 3x4, running_mean fp32 4, "
            "running_var fp32 4) -> fp32 4, fp32 4"),
       {.read = 96 + 32, .write = 64}},
      {Call("aten::batch_norm_elemt(input fp32 2x4x5x5, mean fp32 4, invstd fp32 4) -> fp32 2x4x5x5"), {.flops = 400}},
      {Call("aten::batch_norm_backward_reduce(grad_out fp32 2x4x5x5, input fp32 2x4x5x5, mean fp32 4, invstd fp32 4) "
            "-> fp32 4, fp32 4"),
       {.flops = 600}},
      {Call("aten::batch_norm_backward_elemt(grad_out fp32 2x4x5x5, input fp32 2x4x5x5, mean fp32 4, invstd fp32 4) -> "
            "fp32 2x4x5x5"),
       {.flops = 800}},

      {batch_norm("aten::instance_norm", true, "use_input_stats"), kTrained},
      {batch_norm("aten::instance_norm", false, "use_input_stats"), kFolded},
      {Call("aten::group_norm(input fp32 2x4x5x5, weight fp32 4, bias fp32 4) -> fp32 2x4x5x5"), {.flops = 1200}},
      {Call("aten::native_group_norm_backward(grad_out fp32 2x4x5x5, input fp32 2x4x5x5, mean fp32 2x2, rstd fp32 2x2, "
            "weight fp32 4, output_mask=[1,1,1]) -> fp32 2x4x5x5, fp32 4, fp32 4"),
       {.flops = 1400}},

      {rows("aten::layer_norm").with("(weight fp16 8, bias fp16 8) -> fp16 6x8"), {.flops = 8 * 48}},
      {rows("aten::layer_norm").with("(weight none, bias none) -> fp16 6x8"), {.flops = 6 * 48}},
      {rows_backward("aten::native_layer_norm_backward", {1, 1, 1}).with("(mean fp32 6x1) -> fp16 6x8, fp16 8, fp16 8"),
       {.flops = (8 + 4 + 1) * 48}},
      {rows_backward("aten::native_layer_norm_backward", {0, 1, 1}).with("(mean fp32 6x1) -> none, fp16 8, fp16 8"),
       {.flops = 5 * 48}},
      {rows("aten::rms_norm").with("(weight fp16 8) -> fp16 6x8"), {.flops = 4 * 48}},
      {rows("aten::_fused_rms_norm").with("(weight none) -> fp16 6x8, fp32 6x1"), {.flops = 3 * 48}},
      {rows_backward("aten::_fused_rms_norm_backward", {1, 1}).with("-> fp16 6x8, fp16 8"), {.flops = (6 + 3) * 48}},

      // A weight of 8 x 3, one norm for each row.
      {Call("aten::_weight_norm(v fp32 8x3, g fp32 8x1) -> fp32 8x3"), {.flops = 72}},
      {Call("aten::_weight_norm_interface_backward(grad_w fp32 8x3, saved_v fp32 8x3, saved_g fp32 8x1, saved_norms "
            "fp32 8x1) -> fp32 8x3, fp32 8x1"),
       {.flops = 120}},

      {softmax("aten::softmax"), kSoftmax},
      {softmax("aten::_masked_softmax").in("mask", boolean, {4, 10}), {.flops = 240}},
      {softmax("aten::log_softmax"), kSoftmax},
      {softmax_backward("aten::_softmax_backward_data"), {.flops = 160}},
      {softmax_backward("aten::_log_softmax_backward_data"), {.flops = 160}},
      {softmax_backward("aten::_masked_softmax_backward").in("mask", boolean, {4, 10}), {.flops = 200}},
  };
}

TEST(Normalization, Costs) { check_family(normalization_costs(), normalization_cases()); }

}  // namespace
}  // namespace roofprof::ops::testing
