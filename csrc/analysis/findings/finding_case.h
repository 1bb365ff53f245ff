#pragma once
// The calls that a rule of findings may hold for, what rules ask about them, and numbers as their sentences write them.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// CallsInModule counts the calls of a module and of what is in it.
struct CallsInModule {
  std::int64_t forwards = 0;        // calls of the module
  std::int64_t ops = 0;             // calls of ops that no module inside called
  std::int64_t reads_on_host = 0;   // those of them that read values on the host
  std::int64_t modules_inside = 0;  // calls of the modules right below it
  std::int64_t own_ns = 0;          // time of the module without those inside, in the run that the rows come from
  std::int64_t longer_ns = 0;       // how much longer this is than in the median run
};

// KernelsOfOp has what the kernels of an op show.
struct KernelsOfOp {
  const KernelBucket* older = nullptr;  // the longest of those that were built for an older generation
  std::int64_t reordered_ns = 0;        // the time of those that only change the order of channels
};

// ProgramFacts says of the program as a whole what rules ask for each case.
struct ProgramFacts {
  explicit ProgramFacts(const Profile& data);

  bool compiled = false;  // some of its code was
  bool convolves_volumes = false;
  bool casts_to_wider = false;    // the forward itself does, to a type that narrower weights would then meet
  bool may_cast_to_fp64 = false;  // the forward itself, which keeps that type where model and input change theirs
};

// AllCalls sums the calls of a finding, of which a case is a part.
struct AllCalls {
  double time_ns = 0;
  double calls = 0;
  double percent_of_roof = 0;

  double call_us() const { return time_ns / calls / 1e3; }
  std::string roof_text() const;  // "12.3% of the roof"
};

// UnderRidge is an intensity at which bytes bound the work, not arithmetic.
struct UnderRidge {
  double intensity = 0;
  double ridge = 0;

  std::string text() const;
};

// The calls of one op in one module, or in all of its equal siblings.
struct FindingCase {
  const Profile* data = nullptr;
  const ProgramFacts* program = nullptr;
  const GroupRow* ops = nullptr;     // with the sums of these calls; its op may be "(outside ops)"
  const OpBucket* bucket = nullptr;  // the calls of one signature with most time; null outside of ops
  KernelsOfOp kernels;
  CallsInModule calls;
  const Figures* total = nullptr;
  AllCalls all = {};  // of the finding that it is a part of

  bool is_outside_ops() const;
  bool is_bound(BoundKind kind) const { return ops->bound.kind == kind; }
  double of_roof() const { return ops->percent_of_roof.value_or(100); }  // 0-100; 100 where it is not known
  std::int64_t time_ns() const { return ops->time_ns.value_or(0); }
  std::int64_t wasted_ns() const { return ops->wasted_time_ns.value_or(0); }
  double call_ns() const { return static_cast<double>(time_ns()) / static_cast<double>(ops->calls); }  // the mean
  // Returns the share of the module's own time that other work on the machine took in that run alone.
  double interrupted_share() const;
  // Returns the time of "(outside ops)", without what other work on the machine took in that run alone.
  std::int64_t outside_ns() const;
  // Returns whether its module also made those calls.
  bool is_beside(const OpBucket& other) const;
  // Returns the op's intensity and the ridge, if it is below that.
  std::optional<UnderRidge> below_the_ridge() const;
  // Returns the same, if memory bounds the op.
  std::optional<UnderRidge> under_the_ridge() const;
  std::optional<ConvolutionSizes> convolution() const;
  bool ran_on_cpu() const { return !data->device && data->run.device.starts_with("cpu"); }
  bool is_of_cpp() const;
  // Returns whether torch.compile is worth a try.
  bool may_compile() const { return !is_of_cpp() && !program->compiled; }
  // Returns whether a convolution on a CPU takes and makes images in channels first, and is not near its roof.
  bool wants_channels_last() const;
};

// "(outside ops)" is where code on the host is between ops; "(idle device)" where a device waited for it.
inline constexpr std::string_view kIdleDevice = "(idle device)";

// The region in which a program waits for its data.
inline constexpr std::string_view kDataLoading = "(data loading)";

}  // namespace roofprof

// ---- How sentences write figures.

namespace roofprof::sentences {

// Returns a number with three significant digits: "0.123", "8.10", "2.05M".
std::string number(double value);
template <std::integral Count>
std::string number(Count count) {
  return number(static_cast<double>(count));
}
// Returns "12 µs", "1.20 ms".
std::string text_of_microseconds(double us);
// Returns "stem x3 and 2 more modules": the finding's module, as which `siblings` equal ones count, and its others.
std::string modules_text(const Finding& finding, std::size_t siblings);

}  // namespace roofprof::sentences

// ---- What rules ask of a program.

namespace roofprof::cases {

// Ordinary code reaches at least a tenth of the roof, once a call is long compared with the start of an op or a kernel.
inline constexpr double kFarFromRoof = 10;  // percent
// Another way of writing the same work gains little from here on.
inline constexpr double kNearRoof = 75;  // percent

std::int64_t part_of(std::int64_t ns, double part);
bool ran_compiled(const Profile& data);
bool is_of_cpp(const Profile& data);
// Returns the part of the total's time that observing the run took, by the calls that nothing observed; 0 where that is
// within the noise of both, and on a device, whose kernels take no longer: there idle time has it.
double observing_share(const Profile& data);
// Returns whether the op casts: it reads elements of one size and writes as many of another one.
bool is_cast(const OpBucket& op);
// Returns whether the model was called with one tensor: then code that changes "x" changes all that it takes.
bool takes_one_tensor(const Profile& data);
// Returns whether torch.compile is worth a try: nothing was compiled, and the program is Python's.
bool may_compile(const Profile& data);

}  // namespace roofprof::cases
