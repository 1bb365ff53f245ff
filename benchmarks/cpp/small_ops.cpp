// Ops that dispatch others inside, on 16 elements or so: what is added to each call of them.

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include "profiled.h"
#include "side_by_side.h"

namespace bench {
namespace {

constexpr std::int64_t kCalls = 2'000;
constexpr std::int64_t kWidth = 16;

// torch's profiler keeps data of each op, so the number of iterations is fixed, as in adds.cpp.
constexpr std::int64_t kPeerIterations = 5;

struct Addmm {
  at::Tensor bias = at::ones({kWidth}), x = at::ones({1, kWidth}), weight = at::ones({kWidth, kWidth});
  at::Tensor operator()() const { return at::addmm(bias, x, weight); }
};

struct Transposed {
  at::Tensor x = at::ones({kWidth, kWidth});
  at::Tensor operator()() const { return x.t(); }
};

struct Linear {
  torch::nn::Linear layer{kWidth, kWidth};
  at::Tensor x = at::ones({1, kWidth});
  at::Tensor operator()() { return layer->forward(x); }
};

template <class Call>
struct Calls {
  Call call;
  void operator()() {
    for (std::int64_t i = 0; i < kCalls; ++i) benchmark::DoNotOptimize(call());
  }
};

// The profiled model: the layer, if the calls are those of a layer.
torch::nn::Identity model_of(const Addmm& /*call*/) { return {}; }
torch::nn::Identity model_of(const Transposed& /*call*/) { return {}; }
torch::nn::Linear model_of(const Linear& call) { return call.layer; }

template <class Call>
void plain(benchmark::State& state) {
  const at::NoGradGuard no_grad;
  Calls<Call> calls;
  for (auto _ : state) calls();
  set_ops(state, kCalls);
}

template <class Call>
void profiled(benchmark::State& state) {
  const at::NoGradGuard no_grad;
  Calls<Call> calls;
  run_profiled(state, model_of(calls.call), calls);
  set_ops(state, kCalls);
}

template <class Call>
void torchs_profiler(benchmark::State& state) {
  const at::NoGradGuard no_grad;
  run_with_torchs_profiler(state, Calls<Call>());
  set_ops(state, kCalls);
}

template <class Call>
bool add(const std::string& name, double bar_ns) {
  benchmark::RegisterBenchmark((name + "/plain").c_str(), plain<Call>)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark((name + "/profiled").c_str(), profiled<Call>)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark((name + "/torch's profiler, flops").c_str(), torchs_profiler<Call>)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(kPeerIterations);
  set_bar(name + "/profiled", {.added_ns = bar_ns, .ratio = {}});
  return true;
}

const bool added = add<Addmm>("addmm", 500) && add<Transposed>("t", 500) && add<Linear>("Linear", 1000);

}  // namespace
}  // namespace bench
