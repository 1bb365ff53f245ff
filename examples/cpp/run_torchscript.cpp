// A TorchScript model from a file, called with a dict: save_torchscript.py writes the file.
//
//   run_torchscript MODEL.pt [REPORT.json]

#include <roofprof/profiler.h>
#include <torch/script.h>

#include <iostream>
#include <string>

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: run_torchscript MODEL.pt [REPORT.json]\n";
    return 2;
  }
  torch::jit::Module model = torch::jit::load(argv[1]);
  model.eval();
  const torch::NoGradGuard no_grad;

  c10::Dict<std::string, torch::Tensor> batch;
  batch.insert("image", torch::randn({1, 3, 64, 64}));
  batch.insert("points", torch::randn({1, 500, 4}));

  roofprof::RooflineProfiler prof(model);
  const roofprof::Report report = prof.run(batch);

  std::cout << report;
  report.write_json(argc > 2 ? argv[2] : "run_torchscript.json");
}
