#include "analysis/predict/op_class.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "ops/registry.h"

namespace roofprof {

namespace {

// Returns the class of a family of costs; class_of() has the exceptions by name.
OpClass class_of_family(std::string_view family) {
  static const std::unordered_map<std::string_view, OpClass> kClasses = {{"matmul", OpClass::batched_matmul},
                                                                         {"attention", OpClass::attention},
                                                                         {"normalization", OpClass::elementwise},
                                                                         {"activation", OpClass::elementwise},
                                                                         {"elementwise", OpClass::elementwise},
                                                                         {"reduction", OpClass::reduction},
                                                                         {"pooling", OpClass::pooling},
                                                                         {"indexing", OpClass::copy},
                                                                         {"movement", OpClass::copy}};
  const auto found = kClasses.find(family);
  return found == kClasses.end() ? OpClass::other : found->second;
}

const std::unordered_map<std::string_view, OpClass>& classes_by_name() {
  static const std::unordered_map<std::string_view, OpClass> kClasses = {
      {"linear", OpClass::linear},
      {"addmm", OpClass::linear},
      {"mm", OpClass::linear},
      {"int_mm", OpClass::linear},
      {"scaled_mm", OpClass::linear},
      {"scaled_mm_v2", OpClass::linear},
      {"layer_norm", OpClass::row_norm},
      {"group_norm", OpClass::row_norm},
      {"instance_norm", OpClass::row_norm},
      {"rms_norm", OpClass::row_norm},
      {"softmax", OpClass::softmax},
      {"log_softmax", OpClass::softmax},
      {"cat", OpClass::concatenation},
      {"stack", OpClass::concatenation},
      {"pow", OpClass::elementwise},
      {"upsample_bilinear2d", OpClass::interpolation},
      {"upsample_bicubic2d", OpClass::interpolation},
      {"upsample_bilinear2d_aa", OpClass::interpolation},
      {"upsample_bicubic2d_aa", OpClass::interpolation},
      {"upsample_nearest1d", OpClass::copy},
      {"upsample_nearest2d", OpClass::copy},
      {"adaptive_avg_pool2d", OpClass::reduction},
      {"adaptive_max_pool2d", OpClass::reduction},
  };
  return kClasses;
}

std::string_view family_of(std::string_view op) {
  static const auto kFamilies = [] {
    std::unordered_map<const ops::OpCost*, std::string_view> names;
    for (const auto& family : ops::families()) {
      for (const auto& line : family.costs) names.emplace(&line, family.name);
    }
    return names;
  }();
  const auto found = kFamilies.find(ops::find_cost(op));
  return found == kFamilies.end() ? std::string_view() : found->second;
}

OpClass class_of_convolution(const OpBucket& bucket, const std::vector<Shape>& shapes) {
  if (shapes.size() < 2 || shapes[0].size() < 3 || shapes[1].size() != shapes[0].size()) return OpClass::conv_spatial;
  const Shape& input = shapes[0];
  const Shape& weight = shapes[1];
  const std::int64_t groups = weight[1] > 0 && !is_transposed(bucket.op) ? input[1] / weight[1] : 1;
  if (groups > 1) return weight[1] == 1 ? OpClass::conv_depthwise : OpClass::conv_grouped;
  if (std::all_of(weight.begin() + 2, weight.end(), [](auto size) { return size == 1; }))
    return OpClass::conv_pointwise;
  return input[1] <= 4 ? OpClass::conv_stem : OpClass::conv_spatial;
}

}  // namespace

std::vector<Shape> sized_shapes(const OpBucket& bucket) {
  std::vector<Shape> shapes = bucket.shapes.tensors;
  std::erase_if(shapes, std::not_fn(has_sizes));
  return shapes;
}

std::int64_t elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, saturating_multiply);
}

std::string_view plain_name(std::string_view op) {
  if (const auto colons = op.find("::"); colons != std::string_view::npos) op.remove_prefix(colons + 2);
  while (op.starts_with('_')) op.remove_prefix(1);
  for (const std::string_view variant : {"native_", "cudnn_", "mkldnn_", "fused_"}) {
    if (op.starts_with(variant)) op.remove_prefix(variant.size());
  }
  while (op.ends_with('_')) op.remove_suffix(1);
  for (const std::string_view variant : {"_backward", "_overrideable"}) {
    if (op.ends_with(variant)) op.remove_suffix(variant.size());
  }
  return op;
}

bool is_transposed(std::string_view op) { return op.find("transpose") != std::string_view::npos; }

bool has_tokens_first(std::string_view plain_name) {
  static constexpr std::array<std::string_view, 6> kKernels = {
      "flash_attention_", "efficient_attention_", "varlen_attn", "flash_attn_", "fmha_", "unified_attention"};
  return std::ranges::any_of(kKernels, [&](std::string_view name) { return plain_name.starts_with(name); });
}

std::vector<Shape> operands_of(const OpBucket& bucket, std::vector<Shape> shapes) {
  const auto name = plain_name(bucket.op);
  const bool bias_first = shapes.size() > 2 && (name == "addmm" || name == "baddbmm");
  const bool gradient_first =
      shapes.size() > 2 && (bucket.op.ends_with("convolution_backward") || bucket.op.ends_with("attention_backward"));
  if (bias_first || gradient_first) shapes.erase(shapes.begin());
  return shapes;
}

OpClass class_of(const OpBucket& bucket, const std::vector<Shape>& shapes) {
  const std::string_view family = family_of(bucket.op);
  if (family == "convolution") return class_of_convolution(bucket, operands_of(bucket, shapes));
  if (has_tokens_first(plain_name(bucket.op))) return OpClass::attention;
  if (family == "attention") {
    return !shapes.empty() && shapes[0].size() != 4 ? OpClass::unfused_attention : OpClass::attention;
  }
  // A product with a matrix, as libtorch's Linear computes it, is one with weights.
  if (plain_name(bucket.op) == "matmul" && shapes.size() > 1 && shapes[1].size() == 2) return OpClass::linear;
  const auto named = classes_by_name().find(plain_name(bucket.op));
  return named != classes_by_name().end() ? named->second : class_of_family(family);
}

}  // namespace roofprof
