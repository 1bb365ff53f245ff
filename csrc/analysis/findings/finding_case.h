#pragma once
// Answers what the rules of findings ask about the calls that they may hold for: sizes in shapes, figures as sentences
// write them, facts about the calls.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/findings/finding_rules.h"
#include "core/profile.h"

namespace roofprof {

struct ConvolutionSizes {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  std::int64_t weights = 0;
  bool pointwise = false;  // 1x1

  bool depthwise() const { return groups > 1 && groups == in_channels; }
};

// Returns the sizes of a convolution; empty for other ops, and if the convolution may be a transposed one.
std::optional<ConvolutionSizes> convolution_sizes(const OpBucket& bucket);

// rows x inner times the weight's inner x columns.
struct LinearSizes {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;

  std::int64_t weights() const { return saturating_multiply(inner, columns); }
};

// Returns the sizes of linear and addmm, whose second factor is a weight; empty for other ops.
std::optional<LinearSizes> linear_sizes(const OpBucket& bucket);

}  // namespace roofprof

// ---- The figures that call for a finding, as its sentence writes them.

namespace roofprof::sentences {

// Returns a number with three significant digits: "0.123", "8.10", "2.05M".
std::string number(double value);
// Returns the figure of that name; 0 if there is none.
double value_of(const NamedFigures& figures, std::string_view name);
std::string text_of(const NamedFigures& figures, std::string_view name);
// "12.3% of the roof"
std::string percent_of_roof(const NamedFigures& figures);
// "12 µs", "1.20 ms"
std::string text_of_microseconds(double us);
// Returns "stem x3 and 2 more modules": the finding's module, as which `siblings` equal ones count, and its others.
std::string modules_text(const Finding& finding, std::size_t siblings);

}  // namespace roofprof::sentences

// ---- What the rules of findings ask of the calls that they may hold for.

namespace roofprof::cases {

// Ordinary code reaches at least a tenth of the roof, once a call is long compared with the start of an op or a kernel.
inline constexpr double kFarFromRoof = 10;  // percent
// Another way of writing the same work gains little from here on.
inline constexpr double kNearRoof = 75;  // percent

bool is_bound(const FindingCase& where, BoundKind kind);
double of_roof(const FindingCase& where);  // 0-100; 100 where it is not known
std::int64_t time_of(const FindingCase& where);
std::int64_t wasted_in(const FindingCase& where);
// Returns the share of the module's own time that other work on the machine took in that run alone.
double interrupted_share(const FindingCase& where);
// Returns the time of "(outside ops)", without what other work on the machine took in that run alone.
std::int64_t outside_ns(const FindingCase& where);
std::int64_t part_of(std::int64_t ns, double part);
// Returns the mean time of a call, in nanoseconds.
double call_ns(const FindingCase& where);
bool is_in_module(const FindingCase& where, const OpBucket& bucket);
// Returns the FLOPs per byte above which the arithmetic bounds the op.
std::optional<double> ridge_of(const FindingCase& where);
// Returns the op's intensity and the ridge, if it is below that.
std::optional<NamedFigures> below_the_ridge(const FindingCase& where);
// Returns the same, if memory bounds the op.
std::optional<NamedFigures> under_the_ridge(const FindingCase& where);
std::string under_the_ridge_text(const NamedFigures& figures);
std::optional<ConvolutionSizes> convolution(const FindingCase& where);
bool ran_on_cpu(const FindingCase& where);
bool ran_compiled(const Profile& data);
bool is_of_cpp(const Profile& data);
// Returns whether a convolution on a CPU takes and makes images in channels first, and is not near its roof.
bool wants_channels_last(const FindingCase& where);
// Returns the part of the total's time that observing the run took, by the calls that nothing observed; 0 where that is
// within the noise of both, and on a device, whose kernels take no longer: there idle time has it.
double observing_share(const Profile& data);
// Returns whether the op is one of those that copy tensors into another type, or in the same.
bool may_change_type(std::string_view op);
// Returns whether the model was called with one tensor: then code that changes "x" changes all that it takes.
bool takes_one_tensor(const Profile& data);
// Returns whether torch.compile is worth a try: nothing was compiled, and the program is Python's.
bool may_compile(const Profile& data);

}  // namespace roofprof::cases
