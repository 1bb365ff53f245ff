// Normalisation and softmax. Weights count operations per input element: statistics are mean 1 and variance 3
// (subtract, square, add), and whatever is constant along the normalised elements is folded into one multiply and one
// add. What is done once per channel or row (roots, running statistics) is not counted.

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

constexpr std::int64_t kStatistics = 4;
constexpr std::int64_t kScaleAndShift = 2;

std::int64_t given(const OpCall& call, std::string_view argument) {
  return call.find_tensor(argument) != nullptr ? 1 : 0;
}

void add_per_element(const TensorDesc& input, std::int64_t operations, Work& work) {
  add_operations(work, saturating_multiply(operations, input.numel()), input.dtype);
}

// ---- channels: batch, instance, group normalisation, whose weight and bias fold into scale and shift

// Running statistics: scale and shift alone.
void channel_norm(const OpCall& call, bool own_statistics, Work& work) {
  add_per_element(call.tensor("input"), (own_statistics ? kStatistics : 0) + kScaleAndShift, work);
}

void batch_norm(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  channel_norm(call, call.boolean("training", false), work);
}

void instance_norm(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  channel_norm(call, call.boolean("use_input_stats", true), work);
}

// sum(g) 1 and sum(g * x) 2 are the gradients of bias and weight, but for factors per channel. With statistics of the
// batch, dx = a * g + b * x + c needs both; with running ones it is a * g.
void channel_norm_backward(const OpCall& call, bool own_statistics, const TensorDesc& input, Work& work) {
  const bool sums = own_statistics && wants_gradient(call, 0);
  const std::int64_t of_input = wants_gradient(call, 0) ? (own_statistics ? 4 : 1) : 0;
  const std::int64_t of_weight = sums || wants_gradient(call, 1) ? 2 : 0;
  const std::int64_t of_bias = sums || wants_gradient(call, 2) ? 1 : 0;
  add_per_element(input, of_input + of_weight + of_bias, work);
}

void native_batch_norm_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  channel_norm_backward(call, call.boolean("train", true), call.tensor("input"), work);
}

void batch_norm_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  channel_norm_backward(call, call.boolean("update", true), call.tensor("input"), work);
}

void group_norm_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  channel_norm_backward(call, true, call.tensor("input"), work);
}

// ---- rows: layer and RMS normalisation, whose weight and bias change along the row and do not fold

void layer_norm(const OpCall& call, std::int64_t weight, Work& work) {
  add_per_element(call.tensor("input"), weight + given(call, "weight") + given(call, "bias"), work);
}

// h = g * weight; dx = a * h + b * x + c, a, b, c from sum(h) and sum(h * x); dweight += g * (x - mean) * rstd; dbias
// += g.
void layer_norm_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const std::int64_t of_input = wants_gradient(call, 0) ? 7 + given(call, "weight") : 0;
  const std::int64_t of_weight = wants_gradient(call, 1) ? 4 : 0;
  const std::int64_t of_bias = wants_gradient(call, 2) ? 1 : 0;
  add_per_element(call.tensor("input"), of_input + of_weight + of_bias, work);
}

// h = g * weight; dx = a * h + b * x, b from sum(h * x); dweight += g * x * rstd.
void rms_norm_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const std::int64_t of_input = wants_gradient(call, 0) ? 5 + given(call, "weight") : 0;
  const std::int64_t of_weight = wants_gradient(call, 1) ? 3 : 0;
  add_per_element(call.tensor("input"), of_input + of_weight, work);
}

// ---- CountBytes

// Adds the writes of the running statistics: they are read and written where the batch's statistics are used, but not
// every schema says so.
void updating_bytes(const OpCall& call, bool updates, Work& work) {
  compulsory_bytes(call, work);
  for (const auto& argument : call.arguments) {
    const bool is_running = argument.name == "running_mean" || argument.name == "running_var";
    if (!updates || !is_running || argument.written) continue;
    for (const auto& tensor : argument.tensors)
      work.write_bytes = saturating_add(work.write_bytes, tensor.held_bytes());
  }
}

void batch_norm_bytes(const OpCall& call, Work& work) { updating_bytes(call, call.boolean("training", false), work); }
void instance_norm_bytes(const OpCall& call, Work& work) {
  updating_bytes(call, call.boolean("use_input_stats", true), work);
}
void always_updating_bytes(const OpCall& call, Work& work) { updating_bytes(call, true, work); }
// The op reads only the dtype of its input.
void gathering_bytes(const OpCall& call, Work& work) {
  updating_bytes(call, true, work);
  work.read_bytes -= call.tensor("input").held_bytes();
}

constexpr const char* kBatchNorm = "2 per element (multiply, add); 6 with the batch's statistics (mean 1, variance 3)";
constexpr const char* kTrained = "6 per element: mean 1, variance 3, multiply, add";
constexpr const char* kFolded = "2 per element: multiply, add";
constexpr const char* kBatchNormBackward =
    "bias 1, weight 2, input 4 per element; with running statistics 1 for the input";
constexpr const char* kSoftmax = "5 per element: max, subtract, exp, add, divide";
constexpr const char* kLogSoftmax = "5 per element: max, subtract, exp, add, subtract";
constexpr const char* kLayerNorm = "mean 1, variance 3, multiply, add; weight 1, bias 1 per element";
constexpr const char* kRmsNorm = "square, add, multiply; weight 1 per element";

constexpr OpCost kNormalizationCosts[] = {
    {"aten::batch_norm aten::_batch_norm_impl_index aten::native_batch_norm aten::cudnn_batch_norm "
     "aten::miopen_batch_norm aten::_native_batch_norm_legit",
     batch_norm, 0, batch_norm_bytes, "training", kBatchNorm},
    {"aten::_native_batch_norm_legit_functional", batch_norm, 0, nullptr, "training", kBatchNorm},
    {"aten::_native_batch_norm_legit_no_training aten::_batch_norm_no_update", per_input, 2, nullptr, "", kFolded},
    {"aten::_batch_norm_with_update", per_input, 6, always_updating_bytes, "", kTrained},
    {"aten::_batch_norm_with_update_functional", per_input, 6, nullptr, "", kTrained},
    {"aten::native_batch_norm_backward aten::_batch_norm_impl_index_backward", native_batch_norm_backward, 0, nullptr,
     "train,output_mask", kBatchNormBackward},
    {"aten::batch_norm_backward", batch_norm_backward, 0, nullptr, "update,output_mask", kBatchNormBackward},
    {"aten::cudnn_batch_norm_backward aten::miopen_batch_norm_backward", per_input, 7, nullptr, "",
     "bias 1, weight 2, input 4 per element"},
    // Parts of a batch normalisation whose statistics are shared between processes.
    {"aten::batch_norm_stats", per_input, 4, nullptr, "", "mean 1, variance 3 per element"},
    {"aten::batch_norm_update_stats", per_input, 4, always_updating_bytes, "", "mean 1, variance 3 per element"},
    {"aten::batch_norm_gather_stats aten::batch_norm_gather_stats_with_counts", no_operations, 0, gathering_bytes, "",
     "per channel only"},
    {"aten::batch_norm_elemt", per_output, 2, nullptr, "", kFolded},
    {"aten::batch_norm_backward_reduce", per_input, 3, nullptr, "", "sum of gradients 1, of gradient x input 2"},
    {"aten::batch_norm_backward_elemt", per_input, 4, nullptr, "", "a * gradient + b * input + c"},

    {"aten::instance_norm", instance_norm, 0, instance_norm_bytes, "use_input_stats", kBatchNorm},
    {"aten::group_norm aten::native_group_norm", per_input, 6, nullptr, "", kTrained},
    {"aten::native_group_norm_backward", group_norm_backward, 0, nullptr, "output_mask",
     "bias 1, weight 2, input 4 per element"},

    {"aten::layer_norm aten::native_layer_norm", layer_norm, 6, nullptr, "", kLayerNorm},
    {"prim::MKLDNNLayerNorm", layer_norm, 6, nullptr, "", kLayerNorm},  // TorchScript's own
    {"aten::native_layer_norm_backward", layer_norm_backward, 0, nullptr, "output_mask",
     "input 7 (8 with a weight), weight 4, bias 1 per element"},
    {"aten::rms_norm aten::_fused_rms_norm", layer_norm, 3, nullptr, "", kRmsNorm},
    {"aten::_fused_rms_norm_backward", rms_norm_backward, 0, nullptr, "output_mask",
     "input 5 (6 with a weight), weight 3 per element"},

    {"aten::_weight_norm aten::_weight_norm_interface", per_input, 3, nullptr, "", "square, add, multiply per weight"},
    {"aten::_weight_norm_interface_backward", per_input, 5, nullptr, "",
     "sum of gradient x v 2, a * gradient + b * v 3 per weight"},

    {"aten::softmax aten::_softmax aten::_safe_softmax aten::special_softmax", per_input, 5, nullptr, "", kSoftmax},
    {"aten::_masked_softmax", per_input, 6, nullptr, "", "mask 1, softmax 5 per element"},
    {"aten::log_softmax aten::_log_softmax aten::special_log_softmax", per_input, 5, nullptr, "", kLogSoftmax},
    {"aten::_softmax_backward_data", per_input, 4, nullptr, "",
     "y * (g - sum(g * y)): multiply, add, subtract, multiply"},
    {"aten::_log_softmax_backward_data", per_input, 4, nullptr, "",
     "g - exp(y) * sum(g): add, exp, multiply, subtract"},
    {"aten::_masked_softmax_backward", per_input, 5, nullptr, "", "as softmax's + mask 1"},
};

}  // namespace

std::span<const OpCost> normalization_costs() { return kNormalizationCosts; }

}  // namespace roofprof::ops
