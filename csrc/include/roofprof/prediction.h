#pragma once
// Predicted times on another device: Report::predict. docs/prediction.md has the model and its errors.

#include <cstdint>
#include <optional>
#include <string>

#include "roofprof/dtype.h"

namespace roofprof {

// How a program launches its kernels.
enum class LaunchMode : std::uint8_t {
  eager,     // the host launches op by op, and the device waits where the host is slower
  graph,     // a CUDA or HIP graph is replayed: the same kernels, and no waiting for the host
  compiled,  // elementwise ops, norms and reductions that follow each other are one kernel; no waiting for the host
};

struct PredictionOptions {
  // The type that floating-point work is done in; empty: as it was counted.
  std::optional<DType> precision = {};
  // Samples in a call; empty: as it was counted. The counts are scaled from the leading dimension in which the model's
  // inputs agree.
  std::optional<std::int64_t> batch = {};
  // Factors on the device's own figures: bandwidth = 2 asks for a memory that is twice as fast.
  double bandwidth = 1;
  double peak = 1;
  // True: autocast ran the work that was counted in fp16 or bf16, so its parameters are in fp32.
  bool autocast = true;
  LaunchMode mode = LaunchMode::eager;
  // Seconds in which the host launches an op in eager mode; empty: the default of docs/prediction.md.
  std::optional<double> host_seconds = {};

  bool operator==(const PredictionOptions&) const = default;
};

}  // namespace roofprof
