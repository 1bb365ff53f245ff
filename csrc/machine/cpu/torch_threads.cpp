#include "machine/cpu/torch_threads.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/empty.h>

#include <cstdint>

namespace roofprof {

void on_each_torch_thread(const std::function<void(int index)>& body) {
  // at::parallel_for is a template that runs serially unless compiled with torch's own OpenMP, and linking an OpenMP
  // here would bring a second pool of threads. TensorIterator's loop is compiled inside torch: one element per thread.
  const std::int64_t threads = at::get_num_threads();
  at::Tensor indices = at::empty({threads}, at::TensorOptions().dtype(at::kLong).device(at::kCPU));
  auto* values = indices.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < threads; ++i) values[i] = i;
  at::TensorIterator iterator = at::TensorIterator::nullary_op(indices);
  const auto loop = [&](char** data, const std::int64_t* strides, std::int64_t columns, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        body(
            static_cast<int>(*reinterpret_cast<const std::int64_t*>(data[0] + row * strides[1] + column * strides[0])));
      }
    }
  };
  iterator.for_each(loop, /*grain_size=*/1);
}

std::string torch_threads_text() {
  const int threads = at::get_num_threads();
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

}  // namespace roofprof
