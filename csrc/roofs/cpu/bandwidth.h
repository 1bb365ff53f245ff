#pragma once
// How fast the threads of torch can move bytes to and from a working set.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace roofprof {

struct Bandwidth {
  std::string kernel;           // "read" (a sum), "copy" (a = b) or "triad" (a = b + s * c)
  double bytes_per_second = 0;  // the best repeat; bytes that the program asks for: copy 2 and triad 3 per byte
                                // written, the read of a line before it is written (write-allocate) not added
  double spread = 0;            // (max - min) / max over the repeats
  int repeats = 0;
};

// The three kernels over a working set of that many bytes, all threads and arrays together; best first. Each thread
// works on its own slice, which it touched first. Takes about `budget`, or longer if one sweep does. Throws
// std::bad_alloc if there is not enough memory.
std::vector<Bandwidth> measure_bandwidth(std::int64_t working_set_bytes, std::chrono::duration<double> budget);

// Whether the loops were compiled with optimisation; without it the figures are too low to be roofs.
bool bandwidth_loops_are_optimised();

}  // namespace roofprof
