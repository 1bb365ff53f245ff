// A call of a torch::nn module that does nothing: what it costs to be intercepted, outside a profile and inside one.

#include <dlfcn.h>
#include <torch/nn/modules/linear.h>

#include <stdexcept>

#include "profiled.h"
#include "side_by_side.h"

namespace bench {
namespace {

// Calls per iteration: one takes a few nanoseconds.
constexpr std::int64_t kCalls = 1'000;

using Forward = at::Tensor (*)(torch::nn::IdentityImpl*, const at::Tensor&);

// libtorch's own function, which a program without roofprof calls in the same way: through an address in a table.
Forward libtorchs_forward() {
  void* libtorch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  void* forward = dlsym(libtorch, "_ZN5torch2nn12IdentityImpl7forwardERKN2at6TensorE");
  if (forward == nullptr) throw std::runtime_error("libtorch_cpu.so has no torch::nn::IdentityImpl::forward");
  return reinterpret_cast<Forward>(forward);
}

void plain(benchmark::State& state) {
  Forward volatile forward = libtorchs_forward();
  torch::nn::Identity module;
  const auto input = at::ones({16});
  for (auto _ : state) {
    for (std::int64_t i = 0; i < kCalls; ++i) benchmark::DoNotOptimize(forward(module.get(), input));
  }
  set_ops(state, kCalls);
}

struct Calls {
  torch::nn::Identity module;
  at::Tensor input = at::ones({16});
  void operator()() {
    for (std::int64_t i = 0; i < kCalls; ++i) benchmark::DoNotOptimize(module->forward(input));
  }
};

void no_profile(benchmark::State& state) {
  Calls calls;
  for (auto _ : state) calls();
  set_ops(state, kCalls);
}

void profiled(benchmark::State& state) {
  Calls calls;
  run_profiled(state, calls.module, calls);
  set_ops(state, kCalls);
}

BENCHMARK(plain)->Name("intercepted call/plain")->Unit(benchmark::kMicrosecond);
BENCHMARK(no_profile)->Name("intercepted call/no profile active")->Unit(benchmark::kMicrosecond);
BENCHMARK(profiled)->Name("intercepted call/profiled")->Unit(benchmark::kMicrosecond);

const bool barred = (set_bar("intercepted call/no profile active", {.added_ns = 50, .ratio = {}}),
                     set_bar("intercepted call/profiled", {.added_ns = 50, .ratio = {}}), true);

}  // namespace
}  // namespace bench
