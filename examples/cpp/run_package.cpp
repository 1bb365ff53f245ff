// An AOTInductor package from a file: save_package.py writes the file.
//
//   run_package MODEL.pt2 [REPORT.json]

#include <roofprof/profiler.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: run_package MODEL.pt2 [REPORT.json]\n";
    return 2;
  }
  torch::inductor::AOTIModelPackageLoader model(argv[1]);
  const torch::NoGradGuard no_grad;

  roofprof::RooflineProfiler prof(model);
  const roofprof::Report report = prof.run({torch::randn({1, 3, 64, 64})});

  std::cout << report;
  report.write_json(argc > 2 ? argv[2] : "run_package.json");
}
