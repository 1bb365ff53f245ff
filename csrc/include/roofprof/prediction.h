#pragma once
// Predicted times on another device: Report::predict. docs/prediction.md has the model and its errors.

#include <cstdint>
#include <optional>
#include <string>

#include "roofprof/dtype.h"

namespace roofprof {

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
  // Compiled: elementwise ops, norms and reductions that follow each other are one kernel, and nothing waits for the
  // host.
  bool compiled = false;

  bool operator==(const PredictionOptions&) const = default;
};

}  // namespace roofprof
