#pragma once
// Times on a device that is not at hand: Report::predict. docs/prediction.md has the model and its errors.

#include <cstdint>
#include <optional>
#include <string>

#include "roofprof/dtype.h"

namespace roofprof {

struct PredictionOptions {
  // The type that floating-point work is done in; empty: as it was counted.
  std::optional<DType> precision = {};
  // Samples in a call; empty: as it was counted. What was counted is scaled from the leading dimension in
  // which the model's inputs agree.
  std::optional<std::int64_t> batch = {};
  // Times the device's own: what if its memory were twice as fast.
  double bandwidth = 1;
  double peak = 1;
  // Whether autocast ran what was counted in fp16 or bf16: its parameters are in fp32 then.
  bool autocast = true;
  // Compiled: elementwise ops, norms and reductions that follow each other are one kernel, and nothing waits for the
  // host.
  bool compiled = false;

  bool operator==(const PredictionOptions&) const = default;
};

}  // namespace roofprof
