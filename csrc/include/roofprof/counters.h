#pragma once

#include <cstdint>

namespace roofprof {

// What is read from a GPU's hardware counters, in runs of their own.
enum class Counters : std::uint8_t {
  automatic,  // bytes at DRAM, L2 and L1, kernel by kernel, where that is permitted
  off,
  modules,  // the same of whole modules: their kernels may overlap
  flops     // as automatic, and the FLOPs that were executed: further passes
};

}  // namespace roofprof
