#pragma once
// A benchmark's loop inside a profiler's block, and the peer's: opening and closing are not timed.

#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "roofprof/profiler.h"

namespace bench {

// Roofs by hand: measuring those of the machine takes seconds, and no figure here needs them.
inline roofprof::ProfilerOptions with_given_roofs() {
  roofprof::ProfilerOptions options;
  options.ceilings = roofprof::Ceilings{"given", {}, {}};
  return options;
}

// Runs the state's loop; the profile is thrown away.
template <class Model, class Step>
void run_profiled(benchmark::State& state, const Model& model, Step&& step) {
  roofprof::RooflineProfiler prof(model, with_given_roofs());
  prof.run([&] {
    step();
    for (auto _ : state) step();
  });
}

// torch's own profiler as `with_flops=True` switches it on. What it does when it is switched off (it builds the tree of
// all events) is not in the loop either.
template <class Step>
void run_with_torchs_profiler(benchmark::State& state, Step&& step) {
  using namespace torch::autograd::profiler;
  const ProfilerConfig config(ProfilerState::KINETO, true, false, false, true);
  prepareProfiler(config, {ActivityType::CPU});
  enableProfiler(config, {ActivityType::CPU});
  step();
  for (auto _ : state) step();
  disableProfiler();
}

}  // namespace bench
