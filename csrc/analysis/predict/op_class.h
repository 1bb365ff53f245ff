#pragma once
// Classes of ops by the kind of kernel that runs them, found from name and shapes. The prediction has one efficiency
// for each class.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/profile.h"

namespace roofprof {

enum class OpClass : std::uint8_t {
  linear,             // matrix products with weights
  batched_matmul,     // matrix products of activations
  attention,          // fused: scaled_dot_product_attention of four dimensions, and kernels' own entry points
  unfused_attention,  // of other dimensions, which no fused kernel takes
  conv_pointwise,     // 1 x 1
  conv_spatial,       // larger kernels
  conv_stem,          // of at most four input channels: tensor cores want eight
  conv_grouped,
  conv_depthwise,
  elementwise,  // arithmetic, activations, batch normalisation in evaluation
  row_norm,     // layer, group and RMS normalisation
  softmax,
  reduction,
  pooling,
  interpolation,
  concatenation,
  copy,  // copies, padding, gathers
  other
};

inline constexpr std::size_t kOpClassCount = 18;
inline constexpr std::array<std::string_view, kOpClassCount> kOpClassNames = {
    "linear",    "batched_matmul", "attention",      "unfused_attention", "conv_pointwise", "conv_spatial",
    "conv_stem", "conv_grouped",   "conv_depthwise", "elementwise",       "row_norm",       "softmax",
    "reduction", "pooling",        "interpolation",  "concatenation",     "copy",           "other"};

constexpr bool is_convolution(OpClass op) { return op >= OpClass::conv_pointwise && op <= OpClass::conv_depthwise; }
constexpr bool is_product(OpClass op) { return op == OpClass::linear || op == OpClass::batched_matmul; }
// Returns whether tensor cores compute the class.
constexpr bool is_contraction(OpClass op) { return op <= OpClass::conv_grouped && op != OpClass::unfused_attention; }

// Returns the shapes that figures follow from: they have dimensions, and each size is known.
std::vector<Shape> sized_shapes(const OpBucket& bucket);
std::int64_t elements_of(const Shape& shape);

// Returns the op's name without namespace, in-place mark and the words that name a variant: "relu" for "aten::relu_",
// "conv2d" for "aten::_conv2d_backward".
std::string_view plain_name(std::string_view op);

// Returns whether an attention's tensors are tokens x heads x depth, with or without a leading batch: those of kernels'
// own entry points and of serving engines. Others have heads before tokens.
bool has_tokens_first(std::string_view plain_name);

// Returns the shapes of the operands: without the bias that addmm and baddbmm begin with, and without the gradient that
// a convolution's backward begins with.
std::vector<Shape> operands_of(const OpBucket& bucket, std::vector<Shape> shapes);

bool is_transposed(std::string_view op);  // a convolution whose weights are input x output

OpClass class_of(const OpBucket& bucket, const std::vector<Shape>& shapes);

}  // namespace roofprof
