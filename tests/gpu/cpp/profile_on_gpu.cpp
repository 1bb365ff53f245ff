// A C++ program's report of a model on a GPU; acceptance/cpp.py holds it beside Python's of the same model.
//
//   profile_on_gpu DEVICE TENSORS BATCH SIZE REPORT.json
//
// DEVICE is what roofprof is told, TENSORS where the tensors lie: the same, but for trying this without a GPU.

#include <roofprof/profiler.h>
#include <torch/nn.h>

#include <cstdint>
#include <iostream>
#include <string>

namespace nn = torch::nn;

nn::Conv2d conv(std::int64_t in, std::int64_t out) { return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)); }

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: profile_on_gpu DEVICE TENSORS BATCH SIZE REPORT.json\n";
    return 2;
  }
  const torch::Device tensors(argv[2]);
  const std::int64_t batch = std::stoll(argv[3]);
  const std::int64_t size = std::stoll(argv[4]);

  nn::Sequential model(conv(3, 64), nn::ReLU(), conv(64, 128), nn::ReLU(),
                       nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(1)), nn::Flatten(), nn::Linear(128, 1000));
  model->to(tensors);
  model->eval();
  const torch::NoGradGuard no_grad;
  const auto images = torch::rand({batch, 3, size, size}, tensors);

  roofprof::RooflineProfiler prof(
      model, {.warmup = 1, .repeat = 3, .ceilings = roofprof::Ceilings{}, .device = std::string(argv[1])});
  const roofprof::Report report = prof.run(images);

  std::cout << report << '\n' << report.table({.by = "kernel", .width = 160});
  report.write_json(argv[5]);
}
