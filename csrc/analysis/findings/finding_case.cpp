#include "analysis/findings/finding_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "analysis/hotspots.h"
#include "analysis/roofline.h"
#include "analysis/rows.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

// An op with the position of its input among the tensors: in a backward op the output's gradient comes first.
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
  const auto& shapes = bucket.shapes.tensors;
  if (shapes.size() < op->input + 2) return std::nullopt;
  const Shape& input = shapes[op->input];
  const Shape& weight = shapes[op->input + 1];
  if (!has_sizes(input) || !has_sizes(weight)) return std::nullopt;
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
  const auto& shapes = bucket.shapes.tensors;
  const std::size_t first = linear ? 0 : 1;
  if (shapes.size() < first + 2) return std::nullopt;
  const Shape& input = shapes[first];
  const Shape& weight = shapes[first + 1];
  if (!has_sizes(input) || !has_sizes(weight) || weight.size() != 2) return std::nullopt;
  LinearSizes sizes{1, input.back(), linear ? weight[0] : weight[1]};
  for (std::size_t i = 0; i + 1 < input.size(); ++i) sizes.rows = saturating_multiply(sizes.rows, input[i]);
  if (sizes.inner != (linear ? weight[1] : weight[0])) return std::nullopt;
  return sizes;
}

// ---- the program

namespace {

bool may_change_type(std::string_view op) { return op == "aten::_to_copy" || op == "aten::to" || op == "aten::copy_"; }

bool are_two_alike(const OpShapes& shapes) {
  return shapes.tensors.size() == 2 && shapes.tensors[0] == shapes.tensors[1];
}

// Returns whether the op may make elements of fp64 of others: integers of the same size look alike.
bool may_cast_to_fp64(const OpBucket& op) {
  constexpr std::int64_t kBytesOfFp64 = 8;
  return may_change_type(op.op) && op.dtype != DType::fp64 && op.work.output_elements > 0 &&
         op.work.write_bytes == saturating_multiply(kBytesOfFp64, op.work.output_elements);
}

}  // namespace

ProgramFacts::ProgramFacts(const Profile& data) : compiled(cases::ran_compiled(data)) {
  for (const auto& op : data.counts.ops) {
    convolves_volumes = convolves_volumes || op.op.find("conv3d") != std::string::npos;
    if (op.owner.phase != Phase::forward) continue;
    casts_to_wider = casts_to_wider || (cases::is_cast(op) && op.work.write_bytes > op.work.read_bytes);
    may_cast_to_fp64 = may_cast_to_fp64 || roofprof::may_cast_to_fp64(op);
  }
}

// ---- the case

bool FindingCase::is_outside_ops() const { return ops->op == kOutsideOps; }

double FindingCase::interrupted_share() const {
  const double share =
      static_cast<double>(calls.longer_ns) / static_cast<double>(std::max<std::int64_t>(calls.own_ns, 1));
  return std::clamp(share, 0.0, 1.0);
}

// Other work interrupts code where that spends its time, so as much of it outside of ops as the rest.
std::int64_t FindingCase::outside_ns() const { return cases::part_of(time_ns(), 1 - interrupted_share()); }

bool FindingCase::is_beside(const OpBucket& other) const {
  return data->tree.modules[index_of(other.owner.module)].path == *ops->module;
}

std::optional<UnderRidge> FindingCase::below_the_ridge() const {
  if (bucket == nullptr || !ops->intensity) return std::nullopt;
  const auto* peak = data->roofs.compute_for(bucket->dtype);
  const auto memory = memory_roof(*bucket, data->roofs);
  if (peak == nullptr || !memory) return std::nullopt;
  const double ridge = peak->operations_per_second / memory->bytes_per_second;
  return *ops->intensity < ridge ? std::optional(UnderRidge{*ops->intensity, ridge}) : std::nullopt;
}

std::optional<UnderRidge> FindingCase::under_the_ridge() const {
  return is_bound(BoundKind::memory) ? below_the_ridge() : std::nullopt;
}

std::optional<ConvolutionSizes> FindingCase::convolution() const {
  return bucket == nullptr ? std::nullopt : convolution_sizes(*bucket);
}

bool FindingCase::is_of_cpp() const { return cases::is_of_cpp(*data); }

bool FindingCase::wants_channels_last() const {
  return bucket != nullptr && bucket->channels_first && ran_on_cpu() && ops->op->find("conv") != std::string::npos &&
         is_floating(bucket->dtype) && of_roof() < cases::kNearRoof;
}

std::string AllCalls::roof_text() const {
  return (percent_of_roof < 0.1 ? "under 0.1%" : percent(percent_of_roof / 100)) + " of the roof";
}

std::string UnderRidge::text() const {
  return "AI " + sentences::number(intensity) + " (FLOPs for each byte) under the ridge at " + sentences::number(ridge);
}

}  // namespace roofprof

namespace roofprof::sentences {

std::string number(double value) {
  constexpr std::array<std::pair<double, std::string_view>, 3> kPrefixes = {{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  std::string_view prefix;
  for (const auto& [size, name] : kPrefixes) {
    if (prefix.empty() && std::abs(value) >= size * 0.9995) {
      value /= size;
      prefix = name;
    }
  }
  const bool whole = prefix.empty() && value == std::floor(value);
  return (whole ? fixed_text(value, 0) : short_text(value, 3)).append(prefix);
}

std::string modules_text(const Finding& finding, std::size_t siblings) {
  std::string text = display_path(finding.module);
  if (siblings > 1) text += " x" + std::to_string(siblings);
  const auto others = std::ssize(finding.modules) - static_cast<std::ptrdiff_t>(siblings);
  if (others > 0) text += " and " + counted(others, "more module", "more modules");
  return text;
}

std::string text_of_microseconds(double us) {
  return us < 1e3 ? number(us) + " µs" : us < 1e6 ? number(us / 1e3) + " ms" : number(us / 1e6) + " s";
}

}  // namespace roofprof::sentences

namespace roofprof::cases {

std::int64_t part_of(std::int64_t ns, double part) { return std::llround(static_cast<double>(ns) * part); }

double observing_share(const Profile& data) {
  // On a device it is idle time, of which gainable_idle_ns() leaves it out.
  const double overhead = data.device ? 0 : observer_overhead(data.run.runs).value_or(0);
  return overhead / (1 + overhead);
}

// A copy that broadcasts also writes other bytes than it reads: of `copy_`, whose elements are those of what it writes,
// the shapes tell; a tensor that was expanded has fewer bytes than elements, or a part of what one takes.
bool is_cast(const OpBucket& op) {
  const Work& work = op.work;
  return may_change_type(op.op) && op.link_bytes == 0 && work.input_elements > 0 &&
         work.input_elements == work.output_elements && work.read_bytes != work.write_bytes &&
         work.read_bytes % work.input_elements == 0 && (op.op != "aten::copy_" || are_two_alike(op.shapes));
}

bool takes_one_tensor(const Profile& data) { return data.tree.modules[kModel].input_shapes.size() == 1; }

bool ran_compiled(const Profile& data) {
  return std::ranges::any_of(data.tree.modules, [](const Module& module) { return module.compiled_region >= 0; }) ||
         std::ranges::any_of(data.counts.ops, [](const OpBucket& op) {
           return is_compiled_code(op.op) || op.op.starts_with("triton_");  // Inductor's kernels, as traces name them
         });
}

bool is_of_cpp(const Profile& data) { return !data.run.bypass_sought && !data.origin.imported; }

bool may_compile(const Profile& data) { return !is_of_cpp(data) && !ran_compiled(data); }

}  // namespace roofprof::cases
