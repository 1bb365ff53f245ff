#pragma once
// Small work of torch's is done sooner by one thread, on a busy machine above all.

#include <ATen/Parallel.h>

namespace roofprof {

class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = at::get_num_threads();
};

}  // namespace roofprof
