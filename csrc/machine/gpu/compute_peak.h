#pragma once
// What the measurement of one dtype's peak on a GPU finds.

#include <string>
#include <utility>

namespace roofprof {

struct ComputePeak {
  double operations_per_second = 0;  // two for each multiply-accumulate; 0 where the dtype was left out
  double spread = 0;                 // (max - min) / max over the repeats of the best shape
  std::string method;                // "at::mm 1024x1024x1024 (MxKxN), 2 threads, best of 7"
  std::string left_out;              // why there is no figure, as half a sentence; empty where there is one

  static ComputePeak none(std::string why) {
    ComputePeak peak;
    peak.left_out = std::move(why);
    return peak;
  }
};

}  // namespace roofprof
