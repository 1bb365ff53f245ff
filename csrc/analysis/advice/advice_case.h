#pragma once
// What the rules of advice ask of the calls that they may hold for.

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/advice/advice_rules.h"
#include "analysis/advice/op_sizes.h"

namespace roofprof::cases {

// What is reached by ordinary code is a tenth at least, once a call is long against the start of an op or a kernel.
inline constexpr double kFarFromRoof = 10;  // percent

bool is_bound(const AdviceCase& where, BoundKind kind);
double of_roof(const AdviceCase& where);  // 0-100; 100 where it is not known
std::int64_t time_of(const AdviceCase& where);
std::int64_t wasted_in(const AdviceCase& where);
std::int64_t part_of(std::int64_t ns, double part);
// FLOPs per byte above which the arithmetic bounds the op.
std::optional<double> ridge_of(const AdviceCase& where);
// Its intensity, where that lies under the ridge.
std::optional<NamedFigures> under_the_ridge(const AdviceCase& where);
std::string under_the_ridge_text(const NamedFigures& figures);
std::optional<ConvolutionSizes> convolution(const AdviceCase& where);
bool ran_on_cpu(const AdviceCase& where);
bool ran_compiled(const ProfileData& data);
bool is_of_cpp(const ProfileData& data);
// torch.compile is something to try: nothing was compiled, and the program is Python's.
bool may_compile(const ProfileData& data);

}  // namespace roofprof::cases
