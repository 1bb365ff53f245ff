// What a user writes: each part of the API once, in one program. Compiled with the flags of pkg-config alone.

#include <roofprof/fmt.h>
#include <roofprof/op_costs.h>
#include <roofprof/profiler.h>
#include <roofprof/scope.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#if ROOFPROF_VERSION_MAJOR == 0 && ROOFPROF_VERSION_MINOR < 1
#error "an older roofprof"
#endif

namespace {

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    ROOFPROF_SCOPE(*this);
    return fc2(torch::relu(fc1(x)));
  }
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(64, 32));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(32, 10));
};
TORCH_MODULE(Net);

constexpr std::int64_t kMacs = 8 * (64 * 32 + 32 * 10);

void expect(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "does not hold: " << what << "\n";
  std::exit(1);
}
#define EXPECT(what) expect(what, #what)

}  // namespace

int main() {
  std::cout << "roofprof " << roofprof::version() << "\n";
  EXPECT(roofprof::version() == ROOFPROF_VERSION);
  Net model;
  const auto x = torch::rand({8, 64});

  EXPECT(roofprof::count(model, x).total().macs == kMacs);
  EXPECT(roofprof::count(model, {x}).by_operator().at("aten::addmm").macs == kMacs);

  roofprof::RooflineProfiler prof(model,
                                  {.warmup = 1, .repeat = 3, .ceilings = roofprof::Ceilings::published("RTX 4090")});
  const roofprof::Report report = prof.run({x});
  fmt::print("{}", report);
  EXPECT(report.row("fc1").time() > std::chrono::nanoseconds(0));
  EXPECT(report.row("fc1").figure("macs") == 8 * 64 * 32);
  EXPECT(report.group({"module", "op"}).size() >= 3);
  EXPECT(report.run_times().size() == 3);
  EXPECT(prof.count(x).total().macs == kMacs);

  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto step = [&] {
    optimizer.zero_grad();
    model(x).sum().backward();
    optimizer.step();
  };
  std::cout << prof.run_steps(5, step);
  {
    roofprof::Block block(prof);
    for (int i = 0; i < 2; ++i) {
      step();
      block.step();
    }
  }
  EXPECT(prof.report().steps() == 2);
  try {
    static_cast<void>(roofprof::Ceilings::published("RTX 9999"));
  } catch (const roofprof::Error& error) {
    std::cout << error.what() << "\n";
  }
}
