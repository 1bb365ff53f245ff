#pragma once

#include <cstdint>

namespace roofprof {

// The hardware counters of a GPU that are read, in separate runs.
enum class Counters : std::uint8_t {
  automatic,  // bytes at DRAM, L2 and L1, kernel by kernel, where that is permitted
  off,
  modules,  // the same bytes of whole modules, whose kernels may overlap
  flops     // as automatic, and the FLOPs that were executed, in further passes
};

}  // namespace roofprof
