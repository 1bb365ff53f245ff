#pragma once
// Models profiled without timing anything on purpose.

#include <torch/nn.h>

#include <map>
#include <string>

#include "roofprof/profiler.h"
#include "roofprof/scope.h"

namespace roofprof::testing {

inline ProfilerOptions quick() {
  ProfilerOptions options;
  options.warmup = 0;
  options.repeat = 1;
  options.ceilings = Ceilings{
      "by hand", {{DType::fp32, 1e9, {"given", "test", "", {}}}}, {{"DRAM", 1e9, 0, {"given", "test", "", {}}}}};
  return options;
}

template <class Model, class... Arguments>
Report profiled(const Model& model, Arguments&&... arguments) {
  RooflineProfiler prof(model, quick());
  return prof.run(std::forward<Arguments>(arguments)...);
}

// MACs by row, of rows that have some of their own; `phase` empty: all phases.
inline std::map<std::string, std::int64_t> macs_by_module(const Report& report, const std::string& phase = "") {
  std::map<std::string, std::int64_t> macs;
  for (const auto& row : report.group(std::vector<std::string>{"module", "phase"})) {
    if (row.macs > 0 && (phase.empty() || row.keys[1] == phase)) macs[row.keys[0]] += row.macs;
  }
  return macs;
}

// Calls of counted ops that do something, by row and op.
inline std::map<std::string, std::map<std::string, std::int64_t>> ops_by_module(const Report& report) {
  std::map<std::string, std::map<std::string, std::int64_t>> ops;
  for (const auto& row : report.group(std::vector<std::string>{"module", "op"})) {
    if (row.bytes > 0) ops[row.keys[0]][row.keys[1]] += row.calls;
  }
  return ops;
}

// torch::nn stores no plain Sequential in a Sequential: its forward is a template. This is how people do it.
struct NestedImpl : torch::nn::SequentialImpl {
  using SequentialImpl::SequentialImpl;
  torch::Tensor forward(torch::Tensor x) { return SequentialImpl::forward(std::move(x)); }
};
TORCH_MODULE_IMPL(Nested, NestedImpl);

using Macs = std::map<std::string, std::int64_t>;

}  // namespace roofprof::testing
