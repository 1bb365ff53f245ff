#pragma once
// The device that times are predicted for: what large kernels achieve there, from its roofs.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "analysis/predict/op_features.h"
#include "analysis/predict/parameters.h"
#include "roofprof/ceilings.h"

namespace roofprof {

struct TargetDevice {
  const KindParameters* parameters = nullptr;
  const Ceilings* ceilings = nullptr;
  bool is_gpu = true;
  std::array<double, kDTypeCount> peak{};  // operations per second that are achieved; 0: none is known
  double vector_peak = 0;                  // of fp32, without tensor cores
  double dram = 0;                         // bytes per second that are achieved
  double dram_roof = 0;                    // those of the roof
  double bandwidth_factor = 1;             // of the options; in the two above already
  double cache_bytes = 0;                  // of the last cache
  double multiprocessors = 0;              // 0: not known
  std::vector<std::string> remarks;        // what was taken in place of what is not known
};

// Achieved roofs: of published peaks the shares of `parameters`, and no more than the power limit allows; measured and
// given ones as they are. Both are multiplied by the factors. Throws std::invalid_argument without a bandwidth or any
// peak.
TargetDevice target_device(const Ceilings& ceilings, const PredictionParameters& parameters, double bandwidth_factor,
                           double peak_factor);

// Returns the rate of arithmetic in a dtype; empty: not known. If a card's published peaks lack the dtype, it is the
// rate of the type that stands in for it, because nothing more is published. With other roofs, tf32 may have fp32's
// rate.
std::optional<double> peak_for(const TargetDevice& device, DType dtype);

// ---- The time of one call of an op on a device: the formula of docs/prediction.md.

// Returns the seconds of one call. Throws std::invalid_argument if the device has no peak for what the op computes.
double call_seconds(const OpFeatures& features, const TargetDevice& device);

// Returns the part of these seconds that a call takes which does nothing.
double floor_seconds(const OpFeatures& features, const TargetDevice& device);

// Returns whether the op's arithmetic takes longer than its bytes, each at the device's best.
bool is_compute_bound(const OpFeatures& features, const TargetDevice& device);

}  // namespace roofprof
