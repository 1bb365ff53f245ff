#pragma once
// One line of `roofprof doctor`.

#include <string>

namespace roofprof {

struct Finding {
  std::string what;  // "this build", "driver", "cuda:0", "NVML", "CUPTI", "kernel times", "counters", "other profilers"
  std::string found;   // in words; what is in the way, if anything is
  std::string advice;  // what to do; empty: nothing needs to be done
};

}  // namespace roofprof
