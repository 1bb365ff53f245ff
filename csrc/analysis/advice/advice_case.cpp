#include "analysis/advice/advice_case.h"

#include <algorithm>
#include <cmath>

#include "analysis/advice/sentence_figures.h"
#include "analysis/roofline.h"

namespace roofprof::cases {

bool is_bound(const AdviceCase& where, BoundKind kind) { return where.ops->bound.kind == kind; }
double of_roof(const AdviceCase& where) { return where.ops->percent_of_roof.value_or(100); }
std::int64_t time_of(const AdviceCase& where) { return where.ops->time_ns.value_or(0); }
std::int64_t wasted_in(const AdviceCase& where) { return where.ops->wasted_time_ns.value_or(0); }
std::int64_t part_of(std::int64_t ns, double part) { return std::llround(static_cast<double>(ns) * part); }

std::optional<double> ridge_of(const AdviceCase& where) {
  const auto* peak = where.data->ceilings.compute_for(where.bucket->dtype);
  const auto memory = memory_roof(*where.bucket, where.data->ceilings);
  if (peak == nullptr || !memory) return std::nullopt;
  return peak->operations_per_second / memory->bytes_per_second;
}

std::optional<NamedFigures> under_the_ridge(const AdviceCase& where) {
  if (where.bucket == nullptr || !is_bound(where, BoundKind::memory) || !where.ops->intensity) return std::nullopt;
  const auto ridge = ridge_of(where);
  if (!ridge || *where.ops->intensity >= *ridge) return std::nullopt;
  return NamedFigures{{"intensity", *where.ops->intensity}, {"ridge", *ridge}};
}

std::string under_the_ridge_text(const NamedFigures& figures) {
  return "AI " + sentences::text_of(figures, "intensity") + " under the ridge at " +
         sentences::text_of(figures, "ridge");
}

std::optional<ConvolutionSizes> convolution(const AdviceCase& where) {
  return where.bucket == nullptr ? std::nullopt : convolution_sizes(*where.bucket);
}

bool ran_on_cpu(const AdviceCase& where) { return !where.data->device_timed && where.data->device.starts_with("cpu"); }

bool ran_compiled(const ProfileData& data) {
  return std::ranges::any_of(data.modules, [](const Module& module) { return module.compiled_region >= 0; }) ||
         std::ranges::any_of(data.ops, [](const OpBucket& op) {
           return is_compiled_code(op.op) || op.op.starts_with("triton_");  // Inductor's kernels, as traces name them
         });
}

bool is_of_cpp(const ProfileData& data) { return !data.bypass_sought && !data.imported; }

bool may_compile(const ProfileData& data) { return !is_of_cpp(data) && !ran_compiled(data); }

}  // namespace roofprof::cases
