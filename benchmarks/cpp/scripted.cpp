// resnet18 from a TorchScript file, as programs load it.

#include "scripted.h"

#include <c10/core/GradMode.h>
#include <torch/script.h>

#include "profiled.h"
#include "side_by_side.h"

namespace bench {
namespace {

struct Scripted {
  torch::jit::Module model;
  std::vector<torch::jit::IValue> inputs;
  void operator()() const {
    auto called = model;  // the same module, because forward is not a const member
    auto result = called.forward(inputs);
    benchmark::DoNotOptimize(result);
  }
};

constexpr int kWarmup = 5;  // the executor profiles its first calls and then compiles

void add(const std::string& name, const Scripted& scripted, std::int64_t peer_iterations) {
  const auto plain = [scripted](benchmark::State& state) {
    const at::NoGradGuard no_grad;
    for (auto _ : state) scripted();
  };
  const auto profiled = [scripted](benchmark::State& state) {
    const at::NoGradGuard no_grad;
    run_profiled(state, scripted.model, scripted);
  };
  const auto torchs_profiler = [scripted](benchmark::State& state) {
    const at::NoGradGuard no_grad;
    run_with_torchs_profiler(state, scripted);
  };
  benchmark::RegisterBenchmark((name + "/plain").c_str(), plain)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark((name + "/profiled").c_str(), profiled)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark((name + "/torch's profiler, flops").c_str(), torchs_profiler)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(peer_iterations);
  set_bar(name + "/profiled", {.added_ns = {}, .ratio = 1.03});
}

}  // namespace

void add_scripted(const std::string& file) {
  const at::NoGradGuard no_grad;
  auto model = torch::jit::load(file);
  model.eval();
  for (const std::int64_t size : {64, 224}) {
    Scripted scripted{model, {at::rand({1, 3, size, size})}};
    for (int i = 0; i < kWarmup; ++i) scripted();
    add("scripted resnet18, 1x3x" + std::to_string(size) + "x" + std::to_string(size), scripted, size < 100 ? 20 : 5);
  }
}

}  // namespace bench
