#pragma once
// The result of the measurement of one dtype's peak on a GPU.

#include <string>
#include <utility>

namespace roofprof {

struct ComputePeak {
  double operations_per_second = 0;  // two for each multiply-accumulate; 0 where the dtype was left out
  double spread = 0;                 // (max - min) / max over the repeats of the best shape
  std::string method;                // "at::mm 1024x1024x1024 (MxKxN), 2 threads, best of 7"
  std::string left_out;              // why the figure is missing, as half a sentence; else empty

  static ComputePeak none(std::string why) {
    ComputePeak peak;
    peak.left_out = std::move(why);
    return peak;
  }
};

}  // namespace roofprof
