#pragma once
// The device that times are predicted for: what large kernels achieve there, from its roofs; and what the models of all
// kinds of kernels share.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/predict/op_features.h"
#include "analysis/predict/parameters.h"
#include "roofprof/ceilings.h"

namespace roofprof {

// The numbers of a device whose predictions were fitted to its own kernels.
struct CalibratedParameters {
  GpuParameters gpu;
  AchievedShare achieved;
};

// Multiples of a predicted time.
struct Margins {
  double low = 1;
  double high = 1;
};

struct TargetDevice {
  bool is_gpu = true;
  const GpuParameters* gpu = nullptr;       // of a GPU
  const CpuParameters* cpu = nullptr;       // of a CPU
  const AchievedShare* achieved = nullptr;  // of its architecture; null: not known, or the roofs are not published ones
  const Ceilings* ceilings = nullptr;
  std::shared_ptr<const CalibratedParameters> calibrated;  // what the first and the third point to, if it is calibrated
  std::array<double, kDTypeCount> peak{};                  // operations per second that are achieved; 0: none is known
  double vector_peak = 0;                                  // of fp32, without tensor cores
  double dram = 0;                                         // bytes per second that are achieved
  double dram_roof = 0;                                    // those of the roof
  double bandwidth_factor = 1;                             // of the options; in the two above already
  double cache_bytes = 0;                                  // of the last cache
  double cache_bandwidth = 0;                              // bytes per second that it gives; 0: it has none
  double cache_capacity = 0;         // of the last cache, also where what ops find there is not known in general
  double cache_roof = 0;             // bytes per second of its roof; 0: it has none
  double peak_factor = 1;            // of the options
  double multiprocessors = 0;        // 0: not known
  double cycles = 0;                 // clock cycles in a second, of all multiprocessors together
  std::vector<std::string> remarks;  // what was taken in place of what is not known

  const ClassParameters& of_class(OpClass op) const { return parameters_of(is_gpu ? gpu->classes : cpu->classes, op); }
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

// Returns what is known of the device's architecture, or what is usual.
const AchievedShare& architecture_of(const TargetDevice& device);

// Returns the bytes per second of main memory at that share of what is achieved, never above the roof itself.
double dram_bandwidth(double share, const TargetDevice& device);

// Returns the cache whose size alone is known, with an estimate of its bandwidth; empty: its roof is known, or nothing.
std::optional<MemoryCeiling> estimated_cache(const Ceilings& ceilings);

// Returns the rate of the units that are not tensor cores; the highest peak where fp32's is not known.
double vector_peak(const TargetDevice& device);

// ---- What models of kernels share

inline constexpr double kJoulesPerPicojoule = 1e-12;

// Returns the seconds of an op's arithmetic, each type at its peak. Throws std::invalid_argument if the device has no
// peak for what the op computes.
double seconds_at_peaks(const OpFeatures& op, const TargetDevice& device);

// Returns (compute^overlap + memory^overlap)^(1/overlap): how long both take that run at the same time. overlap = 1:
// one after the other; large: the longer of the two.
double together(double compute, double memory, double overlap);

// Returns the share that misses a cache, where `bytes` fill `half` times the size at which half of them do.
double miss_share(double bytes, double half);

// Returns the seconds of a GPU's traffic: what misses the last cache at that share of the achieved bandwidth, never
// above the roof itself, and the rest at the cache's.
double traffic_seconds(double read, double write, double share, const TargetDevice& device);

inline constexpr double kCacheOfOne = 45e9;  // bytes per second that a multiprocessor gets of a cache: the least known

// Returns the share of so many bytes that misses the last cache.
double streaming_misses(double bytes, const TargetDevice& device);

// Returns 1 for a product of few rows or columns, whose matrix is read as a vector's kernels read it, 0 for one of many
// and for other ops, and what is between them for what is between.
double share_of_vectors(const OpFeatures& op);

double operations_of(const OpFeatures& op);  // of all types

}  // namespace roofprof
