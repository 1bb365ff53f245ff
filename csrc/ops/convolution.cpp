// Convolutions. Without torch: forward MACs = N*Cout*prod(output spatial) * (Cin/groups)*prod(kernel);
// transposed: N*Cin*prod(input spatial) * (Cout/groups)*prod(kernel).

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- parts of the formulas

// These go by position, because the names are (input, weight) in some schemas and (self, weight) in others.
const TensorDesc& input_of(const OpCall& call) { return call.tensor(std::size_t{0}); }
const TensorDesc& weight_of(const OpCall& call) { return call.tensor(std::size_t{1}); }

// The line's weight counts what is fused in; the bias is one addition more.
void add_per_output(const OpCall& call, std::int64_t fused, Work& work) {
  const bool has_bias = call.find_tensor("bias") != nullptr || call.find_tensor("B") != nullptr;
  const TensorDesc& input = input_of(call);
  // A complex addition is two real ones.
  const std::int64_t additions = product({fused + (has_bias ? 1 : 0), call.result().numel(), input.is_complex ? 2 : 1});
  add_operations(work, additions, input.dtype);
}

// ---- CountOperations

void convolve(const OpCall& call, std::int64_t fused, Work& work) {
  add_macs(work, saturating_multiply(call.result().numel(), taps(weight_of(call))), input_of(call));
  add_per_output(call, fused, work);
}

void convolve_transposed(const OpCall& call, std::int64_t fused, Work& work) {
  add_macs(work, saturating_multiply(input_of(call).numel(), taps(weight_of(call))), input_of(call));
  add_per_output(call, fused, work);
}

// `transposed` is an argument.
void convolve_either(const OpCall& call, std::int64_t fused, Work& work) {
  if (call.boolean("transposed", false)) {
    convolve_transposed(call, fused, work);
  } else {
    convolve(call, fused, work);
  }
}

// The weight is reordered for the processor, grouped ones with a dimension more; its elements still are Cout x taps.
void convolve_reordered(const OpCall& call, std::int64_t fused, Work& work) {
  const TensorDesc& output = call.result();
  const std::int64_t positions = output.size(1) == 0 ? 0 : output.numel() / output.size(1);
  add_macs(work, saturating_multiply(positions, call.tensor("W").numel()), call.tensor("X"));
  add_per_output(call, fused, work);
}

void convolve_reordered_transposed(const OpCall& call, std::int64_t fused, Work& work) {
  const TensorDesc& input = call.tensor("X");
  const std::int64_t positions = input.size(1) == 0 ? 0 : input.numel() / input.size(1);
  add_macs(work, saturating_multiply(positions, call.tensor("W").numel()), input);
  add_per_output(call, fused, work);
}

// Time, batch, channels; the weight is (kernel, Cin, Cout).
void convolve_time_batch_channels(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& weight = weight_of(call);
  add_macs(work, product({call.result().numel(), weight.size(0), weight.size(1)}), input_of(call));
  add_per_output(call, 0, work);
}

// Each wanted gradient of input or weight repeats the forward's MACs, group by group; the bias gradient adds up the
// gradient of the output.
void add_backward(const OpCall& call, std::int64_t forward_macs, const TensorDesc& grad, Work& work) {
  for (const std::size_t input_or_weight : {0, 1}) {
    if (wants_gradient(call, input_or_weight)) add_macs(work, forward_macs, grad);
  }
  if (wants_gradient(call, 2)) add_operations(work, product({grad.numel(), grad.is_complex ? 2 : 1}), grad.dtype);
}

void convolve_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& grad = call.tensor("grad_output");
  const TensorDesc& outer = call.boolean("transposed", false) ? call.tensor("input") : grad;
  add_backward(call, saturating_multiply(outer.numel(), taps(call.tensor("weight"))), grad, work);
}

void slow_convolve_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& grad = call.tensor("grad_output");
  add_backward(call, saturating_multiply(grad.numel(), taps(call.tensor("weight"))), grad, work);
}

void convolve_time_batch_channels_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& grad = call.tensor("self");
  const TensorDesc& weight = call.tensor("weight");
  add_macs(work, product({2, grad.numel(), weight.size(0), weight.size(1)}), grad);
  add_operations(work, grad.numel(), grad.dtype);
}

// ---- CountBytes

// The gradient of the input needs the weight, that of the weight needs the input.
void backward_bytes(const OpCall& call, Work& work) {
  read(work, call.find_tensor("grad_output"));
  if (wants_gradient(call, 0)) read(work, call.find_tensor("weight"));
  if (wants_gradient(call, 1)) read(work, &call.tensor(std::size_t{1}));
  write_results(call, work);
}

constexpr const char* kConv = "MACs = outputs x Cin/groups x kernel; bias 1 per output";
constexpr const char* kTransposed = "MACs = inputs x Cout/groups x kernel; bias 1 per output";
constexpr const char* kEither = "as conv or conv_transpose; bias 1 per output";
constexpr const char* kConvolutionFused = "as conv + what is fused in: 1 per output each";
constexpr const char* kConvolutionBackward =
    "the forward's MACs for each wanted gradient of input and weight; bias gradient 1 per output";

constexpr OpCost kConvolutionCosts[] = {
    {"aten::conv1d aten::conv2d aten::conv3d", convolve, 0, nullptr, "", kConv},
    {"aten::conv_transpose1d aten::conv_transpose2d aten::conv_transpose3d", convolve_transposed, 0, nullptr, "",
     kTransposed},
    {"aten::conv_tbc", convolve_time_batch_channels, 0, nullptr, "", kConv},

    // The ops above dispatch to these, which are seen alone below autograd and in graphs.
    {"aten::convolution aten::_convolution aten::convolution_overrideable", convolve_either, 0, nullptr, "transposed",
     kEither},
    {"aten::_convolution_mode aten::thnn_conv2d aten::_slow_conv2d_forward aten::slow_conv3d aten::slow_conv3d_forward "
     "aten::slow_conv_dilated2d aten::slow_conv_dilated3d aten::_conv_depthwise2d aten::conv_depthwise3d "
     "aten::_nnpack_spatial_convolution aten::mkldnn_convolution",
     convolve, 0, nullptr, "", kConv},
    {"aten::slow_conv_transpose2d aten::slow_conv_transpose3d", convolve_transposed, 0, nullptr, "", kTransposed},
    {"prim::mkldnn_convolution", convolve, 0, nullptr, "", kConv},  // TorchScript's own, optimised for inference
    {"aten::cudnn_convolution aten::miopen_convolution aten::miopen_depthwise_convolution", convolve, 0, nullptr, "",
     kConv},
    {"aten::cudnn_convolution_transpose aten::miopen_convolution_transpose", convolve_transposed, 0, nullptr, "",
     kTransposed},
    {"aten::cudnn_convolution_relu aten::miopen_convolution_relu", convolve, 1, nullptr, "", kConvolutionFused},
    {"aten::cudnn_convolution_add_relu aten::miopen_convolution_add_relu", convolve, 2, nullptr, "", kConvolutionFused},
    {"mkldnn::_convolution_pointwise", convolve_reordered, 1, nullptr, "", kConvolutionFused},
    {"mkldnn::_convolution_transpose_pointwise", convolve_reordered_transposed, 1, nullptr, "", kConvolutionFused},

    {"aten::convolution_backward aten::convolution_backward_overrideable", convolve_backward, 0, backward_bytes,
     "transposed,output_mask", kConvolutionBackward},
    {"aten::_slow_conv2d_backward", slow_convolve_backward, 0, backward_bytes, "output_mask", kConvolutionBackward},
    {"aten::conv_tbc_backward", convolve_time_batch_channels_backward, 0, nullptr, "", kConvolutionBackward},
};

}  // namespace

std::span<const OpCost> convolution_costs() { return kConvolutionCosts; }

}  // namespace roofprof::ops
