// Measures the cost of profiling in a C++ program: each workload plain and profiled, from one run. README.md says how
// to read it.
//
//   bench_overhead [--resnet18=FILE] [--cpu_time] [any flag of Google Benchmark's]

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/version.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "scripted.h"
#include "side_by_side.h"

int main(int argc, char** argv) {
  // Given first, so that the command line's win. Interleaved: what slows the machine for a while slows all variants.
  std::string program = argv[0];
  std::string interleaved = "--benchmark_enable_random_interleaving=true";
  std::string repetitions = "--benchmark_repetitions=21";
  std::string time = "--benchmark_min_time=0.1";
  std::string aggregates = "--benchmark_display_aggregates_only=true";
  std::vector<char*> arguments = {program.data(), interleaved.data(), repetitions.data(), time.data(),
                                  aggregates.data()};
  std::string resnet18;
  bool cpu_time = false;
  for (const std::string_view argument : std::vector<std::string_view>(argv + 1, argv + argc)) {
    constexpr std::string_view kFile = "--resnet18=";
    if (argument.starts_with(kFile)) {
      resnet18 = argument.substr(kFile.size());
    } else if (argument == "--cpu_time") {
      cpu_time = true;
    } else {
      arguments.push_back(const_cast<char*>(argument.data()));
    }
  }
  at::set_num_threads(1);
  if (!resnet18.empty()) bench::add_scripted(resnet18);

  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  std::cout << "torch " << TORCH_VERSION << ", 1 thread\n";
  bench::SideBySide reporter(cpu_time);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  return 0;
}
