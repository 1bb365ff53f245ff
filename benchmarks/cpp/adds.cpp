// 10,000 adds of 16 elements: next to nothing but dispatch, so that what is added to an op shows.

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include "profiled.h"
#include "side_by_side.h"

namespace bench {
namespace {

constexpr std::int64_t kAdds = 10'000;

// torch's profiler keeps data of each op: a fixed number of iterations bounds their size.
constexpr std::int64_t kPeerIterations = 5;

struct Chain {
  at::Tensor start = at::ones({16});
  at::Tensor step = at::ones({16});
  void operator()() const {
    auto sum = start;
    for (std::int64_t i = 0; i < kAdds; ++i) sum = at::add(sum, step);
    benchmark::DoNotOptimize(sum);
  }
};

void plain(benchmark::State& state) {
  const at::NoGradGuard no_grad;
  const Chain chain;
  for (auto _ : state) chain();
  set_ops(state, kAdds);
}

void profiled(benchmark::State& state) {
  const at::NoGradGuard no_grad;
  run_profiled(state, torch::nn::Identity(), Chain());
  set_ops(state, kAdds);
}

void torchs_profiler(benchmark::State& state) {
  const at::NoGradGuard no_grad;
  run_with_torchs_profiler(state, Chain());
  set_ops(state, kAdds);
}

BENCHMARK(plain)->Name("adds/plain")->Unit(benchmark::kMillisecond);
BENCHMARK(profiled)->Name("adds/profiled")->Unit(benchmark::kMillisecond);
BENCHMARK(torchs_profiler)
    ->Name("adds/torch's profiler, flops")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(kPeerIterations);

const bool barred = (set_bar("adds/profiled", {.added_ns = 500, .ratio = {}}), true);

}  // namespace
}  // namespace bench
