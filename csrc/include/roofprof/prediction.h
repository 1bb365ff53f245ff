#pragma once
// Predicted times on another device: Report::predict. docs/prediction.md has the model and its errors.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "roofprof/dtype.h"

namespace roofprof {

// A program's way to launch its kernels.
enum class LaunchMode : std::uint8_t {
  eager,     // the host launches op by op, and the device waits where the host is slower
  graph,     // a CUDA or HIP graph is replayed: the same kernels, and no waiting for the host
  compiled,  // elementwise ops, norms and reductions that follow each other are one kernel; no waiting for the host
};
inline constexpr std::array<std::string_view, 3> kLaunchModeNames = {"eager", "graph", "compiled"};
[[nodiscard]] constexpr std::string_view name_of(LaunchMode mode) {
  return kLaunchModeNames[static_cast<std::size_t>(mode)];
}

// A way to share a model's work among ranks (docs/prediction.md lists what each assumes).
enum class Parallel : std::uint8_t {
  ddp,   // each has its own samples and the whole model; gradients are all-reduced
  fsdp,  // each has its own samples and a part of each block's parameters, which it gathers from the others
  tp     // all have the same samples, and each a part of the products of every transformer block
};
inline constexpr std::array<std::string_view, 3> kParallelNames = {"ddp", "fsdp", "tp"};
[[nodiscard]] constexpr std::string_view name_of(Parallel parallel) {
  return kParallelNames[static_cast<std::size_t>(parallel)];
}

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
  // The model and its images have their channels last in memory, which convolutions in half on a GPU want. Compiled
  // models bring them into that order themselves.
  bool channels_last = false;
  LaunchMode mode = LaunchMode::eager;
  // Seconds that the host takes to launch an op in eager mode; empty: the default of docs/prediction.md.
  std::optional<double> host_seconds = {};
  // The devices of one machine that share the work. What was counted is one rank's with ddp and fsdp, and the whole
  // model's with tp.
  std::int64_t ranks = 1;
  Parallel parallel = Parallel::ddp;

  bool operator==(const PredictionOptions&) const = default;
};

}  // namespace roofprof
