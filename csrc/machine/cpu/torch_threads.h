#pragma once
// Running plain code on the threads that torch computes with.

#include <functional>
#include <string>

namespace roofprof {

// Calls body(0) ... body(n - 1), n being at::get_num_threads(), each on its own thread of torch's pool and the same
// index on the same thread each time; returns when all are done. The body must not call torch.
// Inside a parallel region of torch all calls run on the calling thread, as torch's own loops do there.
void on_each_torch_thread(const std::function<void(int index)>& body);

// "1 thread", "16 threads": how many there are now, for the description of a measurement.
std::string torch_threads_text();

}  // namespace roofprof
