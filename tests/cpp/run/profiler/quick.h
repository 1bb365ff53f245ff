#pragma once
// What the profiler's tests share: short runs under roofs by hand, so that nothing is measured.

#include <ATen/ops/rand.h>

#include <algorithm>
#include <string_view>

#include "roofprof/profiler.h"

namespace roofprof::testing {

inline ProfilerOptions quick() {
  return {
      .warmup = 1,
      .repeat = 3,
      .ceilings = Ceilings{
          "by hand", {{DType::fp32, 1e9, {"given", "test", "", {}}}}, {{"DRAM", 1e9, 0, {"given", "test", "", {}}}}}};
}

// The same for models of TorchScript's, whose executor needs no third run to make up its mind, without roofs.
inline ProfilerOptions quick_script() { return {.warmup = 1, .repeat = 2, .ceilings = Ceilings{}}; }

// For a linear layer from 16 to 8 features.
inline at::Tensor input() { return at::rand({4, 16}); }
inline constexpr std::int64_t kLinearMacs = 4 * 16 * 8;

// Whether one of the report's notes has these words in it.
inline bool says(const Report& report, std::string_view words) {
  return std::ranges::any_of(report.coverage().notes,
                             [&](const auto& note) { return note.text.find(words) != std::string::npos; });
}

}  // namespace roofprof::testing
