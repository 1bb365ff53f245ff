#pragma once
// Measures how fast the threads of torch can move bytes, over working sets from 16 KiB to beyond the caches.

#include <cstdint>
#include <memory>
#include <vector>

#include "roofprof/ceilings.h"

namespace roofprof {

// Bytes are those that the program asks for: the read of a line before it is written (write-allocate) is not added.
// Stores are ordinary or past the caches, whichever is faster.
class BandwidthSweep {
 public:
  // Each thread works on its own slice, which it touched first. Throws std::bad_alloc if there is not enough memory.
  explicit BandwidthSweep(std::int64_t largest_bytes);
  ~BandwidthSweep();
  BandwidthSweep(const BandwidthSweep&) = delete;
  BandwidthSweep& operator=(const BandwidthSweep&) = delete;

  // Measures every working set with every kernel once; takes two or three seconds.
  std::vector<BandwidthPoint> round();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 16 KiB and on, each the square root of two times the one before.
std::vector<std::int64_t> working_sets_up_to(std::int64_t largest_bytes);

}  // namespace roofprof
