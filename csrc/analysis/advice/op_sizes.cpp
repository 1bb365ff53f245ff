#include "analysis/advice/op_sizes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

namespace roofprof {

namespace {

using Sizes = std::vector<std::int64_t>;

// "1x3x224x224, 64x3x7x7" as numbers; nothing where it says anything else ("other shapes").
std::vector<Sizes> sizes_in(std::string_view text) {
  std::vector<Sizes> shapes(1);
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    if (text.substr(static_cast<std::size_t>(at - text.data())).starts_with("()")) {
      at += 2;
    } else {
      std::int64_t size = 0;
      const auto [next, error] = std::from_chars(at, end, size);
      if (error != std::errc()) return {};
      shapes.back().push_back(size);
      at = next;
    }
    if (at == end) break;
    if (*at == 'x') {
      ++at;
    } else if (*at == ',') {
      shapes.emplace_back();
      at += at + 1 < end && at[1] == ' ' ? 2 : 1;
    } else {
      return {};
    }
  }
  return shapes;
}

// Where the arguments stand among the tensors; the output's gradient comes first in a backward op.
struct ConvolutionOp {
  std::string_view name;
  std::size_t input = 0;
};
constexpr std::array<ConvolutionOp, 7> kConvolutions = {{{"aten::conv1d"},
                                                         {"aten::conv2d"},
                                                         {"aten::conv3d"},
                                                         {"aten::_conv_depthwise2d"},
                                                         {"aten::mkldnn_convolution"},
                                                         {"aten::cudnn_convolution"},
                                                         {"aten::convolution_backward", 1}}};

}  // namespace

std::optional<ConvolutionSizes> convolution_sizes(const OpBucket& bucket) {
  const auto op = std::ranges::find(kConvolutions, std::string_view(bucket.op), &ConvolutionOp::name);
  if (op == kConvolutions.end()) return std::nullopt;
  const auto shapes = sizes_in(bucket.shapes);
  if (shapes.size() < op->input + 2) return std::nullopt;
  const Sizes& input = shapes[op->input];
  const Sizes& weight = shapes[op->input + 1];
  if (weight.size() < 3 || (input.size() != weight.size() && input.size() + 1 != weight.size())) return std::nullopt;
  const std::size_t channel = input.size() == weight.size() ? 1 : 0;
  ConvolutionSizes sizes;
  sizes.in_channels = input[channel];
  sizes.out_channels = weight[0];
  sizes.weights = 1;
  for (const auto size : weight) sizes.weights = saturating_multiply(sizes.weights, size);
  if (weight[1] <= 0 || sizes.in_channels % weight[1] != 0) return std::nullopt;
  sizes.groups = sizes.in_channels / weight[1];
  if (op->input == 1 && (shapes[0].size() <= channel || shapes[0][channel] != weight[0])) return std::nullopt;
  sizes.pointwise = std::all_of(weight.begin() + 2, weight.end(), [](auto size) { return size == 1; });
  return sizes;
}

std::optional<LinearSizes> linear_sizes(const OpBucket& bucket) {
  const bool linear = bucket.op == "aten::linear";
  if (!linear && bucket.op != "aten::addmm") return std::nullopt;
  const auto shapes = sizes_in(bucket.shapes);
  const std::size_t first = linear ? 0 : 1;
  if (shapes.size() < first + 2) return std::nullopt;
  const Sizes& input = shapes[first];
  const Sizes& weight = shapes[first + 1];
  if (input.empty() || weight.size() != 2) return std::nullopt;
  LinearSizes sizes{1, input.back(), linear ? weight[0] : weight[1]};
  for (std::size_t i = 0; i + 1 < input.size(); ++i) sizes.rows = saturating_multiply(sizes.rows, input[i]);
  if (sizes.inner != (linear ? weight[1] : weight[0])) return std::nullopt;
  return sizes;
}

}  // namespace roofprof
