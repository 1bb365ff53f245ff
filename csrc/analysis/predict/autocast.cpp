#include "analysis/predict/autocast.h"

#include <algorithm>
#include <array>
#include <utility>

namespace roofprof {

namespace {

constexpr double kHalf = 2;  // bytes of an element
constexpr double kWide = 4;

template <class Names>
bool names(const Names& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

// torch's list of what autocast computes in fp32 (aten/src/ATen/autocast_mode.h), of what models call.
constexpr std::array<std::string_view, 11> kInFp32 = {"pow",
                                                      "exp",
                                                      "log",
                                                      "rsqrt",
                                                      "reciprocal",
                                                      "softplus",
                                                      "norm",
                                                      "cdist",
                                                      "upsample_nearest2d",
                                                      "upsample_bilinear2d",
                                                      "upsample_bicubic2d"};
// Likewise, but they read the narrow type themselves.
constexpr std::array<std::string_view, 6> kInFp32ByThemselves = {"softmax", "log_softmax", "sum",
                                                                 "prod",    "cumsum",      "linalg_vector_norm"};
constexpr std::array<std::string_view, 6> kOfSeveral = {"add", "sub", "mul", "div", "addcmul", "maximum"};

}  // namespace

std::optional<bool> AutocastFlow::is_wide(std::int64_t elements) const {
  const auto found = latest_.find(elements);
  return found == latest_.end() ? std::nullopt : std::optional(found->second);
}

bool AutocastFlow::first_was_wide(std::int64_t elements) const {
  const auto found = first_.find(elements);
  return found != first_.end() && found->second;
}

// With weights only the first operand is looked at. Operands of other products come from views of what a product made,
// or straight from the last op.
AutocastBytes AutocastFlow::product(OpClass op, const std::vector<std::int64_t>& sizes, double read, double write) {
  AutocastBytes bytes{read, write, 0};
  output_is_wide_ = false;
  const bool with_weights = op == OpClass::linear || is_convolution(op);
  for (const auto elements : sizes) {
    const bool wide = with_weights ? is_wide(elements).value_or(false) : last_.elements == elements && last_.wide;
    if (wide) bytes.casts += (kWide + kHalf) * static_cast<double>(elements);
    if (wide || with_weights) break;
  }
  return bytes;
}

AutocastBytes AutocastFlow::in_fp32(std::string_view name, const std::vector<std::int64_t>& sizes, double read,
                                    double write) {
  output_is_wide_ = true;
  const auto input = sizes.empty() ? 0 : sizes.front();
  AutocastBytes bytes{2 * read, 2 * write, 0};
  if (is_wide(input).value_or(false)) return bytes;
  if (names(kInFp32ByThemselves, name)) {
    bytes.read = read;
  } else {
    bytes.casts = (kHalf + kWide) * static_cast<double>(input);
  }
  return bytes;
}

// Of two tensors of the output's size the second is what a sum goes on from. One whose size nothing made is a
// parameter.
AutocastBytes AutocastFlow::promoted(const std::vector<std::int64_t>& sizes, bool in_place, bool is_sum, double read,
                                     double write) {
  const auto largest = *std::ranges::max_element(sizes);
  bool any_wide = false;
  bool first = true;
  double seen = 0;
  std::vector<bool> wide;
  for (const auto elements : sizes) {
    bool is = false;
    if (elements != largest) {
      is = is_wide(elements).value_or(true);
    } else if (std::exchange(first, false)) {
      is = is_wide(elements).value_or(first_was_wide(elements));
    } else {
      const auto sum = residual_.find(elements);
      is = sum == residual_.end() ? first_was_wide(elements) : sum->second;
    }
    wide.push_back(is);
    any_wide = any_wide || is;
    seen += static_cast<double>(elements) * (is ? kWide : kHalf);
  }
  output_is_wide_ = in_place ? wide.front() : any_wide;
  if (is_sum) residual_[output_] = output_is_wide_;
  double counted = 0;
  for (const auto elements : sizes) counted += static_cast<double>(elements) * kHalf;
  // What was counted may be less than the operands (x + x): only the ratio is taken over.
  return {counted > 0 ? read * seen / counted : read, write * (output_is_wide_ ? 2 : 1), 0};
}

AutocastBytes AutocastFlow::concatenated(const std::vector<std::int64_t>& sizes, double read, double write) {
  const auto wide = [&](std::int64_t elements) { return is_wide(elements).value_or(false); };
  output_is_wide_ = std::ranges::any_of(sizes, wide);
  double seen = 0;
  double counted = 0;
  for (const auto elements : sizes) {
    seen += static_cast<double>(elements) * (wide(elements) ? kWide : kHalf);
    counted += static_cast<double>(elements) * kHalf;
  }
  return {counted > 0 ? read * seen / counted : read, write * (output_is_wide_ ? 2 : 1), 0};
}

AutocastBytes AutocastFlow::next(const OpBucket& bucket, OpClass op, const std::vector<Shape>& shapes, double read,
                                 double write) {
  const std::int64_t calls = std::max<std::int64_t>(bucket.calls, 1);
  output_ = bucket.work.output_elements / calls;
  AutocastBytes bytes{read, write, 0};
  if (bucket.dtype == DType::fp16 || bucket.dtype == DType::bf16) {
    std::vector<std::int64_t> sizes;
    for (const auto& shape : shapes) sizes.push_back(elements_of(shape));
    const auto name = plain_name(bucket.op);
    const bool first_is_wide = !sizes.empty() && is_wide(sizes.front()).value_or(false);
    if (is_contraction(op) || op == OpClass::conv_depthwise || op == OpClass::unfused_attention) {
      bytes = product(op, sizes, read, write);
    } else if (op == OpClass::row_norm) {
      output_is_wide_ = false;
      if (first_is_wide) bytes.casts = (kWide + kHalf) * static_cast<double>(sizes.front());
    } else if (names(kInFp32, name) || names(kInFp32ByThemselves, name)) {
      bytes = in_fp32(name, sizes, read, write);
    } else if (op == OpClass::concatenation && sizes.size() > 1) {
      bytes = concatenated(sizes, read, write);
    } else if (names(kOfSeveral, name) && sizes.size() > 1) {
      bytes = promoted(sizes, bucket.op.ends_with('_'), name == "add", read, write);
    } else {
      output_is_wide_ = first_is_wide;
      if (first_is_wide) bytes = {2 * read, 2 * write, 0};
    }
    latest_[output_] = output_is_wide_;
    first_.emplace(output_, output_is_wide_);
  }
  last_ = {output_, output_is_wide_};
  return bytes;
}

}  // namespace roofprof
