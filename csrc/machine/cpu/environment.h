#pragma once
// The environment of a CPU profile: what a reader must know to compare its figures with another machine's.

#include <cstdint>
#include <functional>
#include <string>

#include "roofprof/report.h"

namespace roofprof {

// Running plain code on the threads that torch computes with.

// Calls body(0) ... body(n - 1), n being at::get_num_threads(), each on its own thread of torch's pool and the same
// index on the same thread each time; returns when all are done. The body must not call torch.
// Inside a parallel region of torch all calls run on the calling thread, as torch's own loops do there.
void on_each_torch_thread(const std::function<void(int index)>& body);

// "1 thread", "16 threads": how many there are now, for the description of a measurement.
std::string torch_threads_text();

// The rank of this process among those of its program, by torchrun's variables RANK and WORLD_SIZE, which other
// launchers set too.
struct RankOfEnvironment {
  std::int64_t rank = 0;
  std::int64_t world_size = 0;  // 0: the process has no rank
  std::string wrong;            // what is wrong with the variables, a sentence; empty: nothing
};
RankOfEnvironment rank_of_environment();

// Keys in snake_case with units in their names; what the system does not show is left out, except `governor`, which
// then says that. Sizes of caches are those of one cache.
Environment cpu_environment();

// The CPU's model name; the architecture where the system names no model.
std::string cpu_model();

}  // namespace roofprof
