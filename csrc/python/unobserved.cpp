#include "unobserved.h"

#include <algorithm>
#include <vector>

#include "tensor_walk.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

using observe::has_memory;
using observe::memory_of;
using observe::MemoryRange;

constexpr std::size_t kMaxTensorsInOutput = 4096;

// Returns the memory of an array that is not a tensor.
MemoryRange memory_of_array(PyObject* array) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array, &buffer, PyBUF_STRIDED_RO) != 0) {
    PyErr_Clear();
    return {};
  }
  const auto* begin = static_cast<const char*>(buffer.buf);
  const MemoryRange range{nullptr, begin, begin + buffer.len};
  PyBuffer_Release(&buffer);
  return range;
}

// Calls see_tensor(tensor) and see_array(memory) for each; of modules and other objects, for their attributes'.
template <typename SeeTensor, typename SeeArray>
class EachTensor {
 public:
  EachTensor(SeeTensor see_tensor, SeeArray see_array)
      : see_tensor_(std::move(see_tensor)), see_array_(std::move(see_array)) {}

  bool full() const { return seen_ >= kMaxTensorsInOutput; }
  void refused() {}
  void visit(const at::Tensor& tensor) {
    ++seen_;
    see_tensor_(tensor);
  }
  void open(PyObject* object, int nesting) {
    if (PyObject_CheckBuffer(object) != 0) {
      ++seen_;
      see_array_(memory_of_array(object));
      return;
    }
    if (nesting < kMaxNesting / 2) walk_tensors(attributes_of(object).ptr(), *this, nesting + 1);
  }

 private:
  SeeTensor see_tensor_;
  SeeArray see_array_;
  std::size_t seen_ = 0;
};

template <typename SeeTensor, typename SeeArray>
void for_each_tensor(PyObject* value, SeeTensor see_tensor, SeeArray see_array) {
  EachTensor each(std::move(see_tensor), std::move(see_array));
  walk_tensors(value, each);
}

}  // namespace

bool is_any_new(std::vector<MemoryRange> found, PyObject* module, PyObject* arguments, PyObject* keywords) {
  if (found.empty()) return false;
  const auto leave_out = [&](const MemoryRange& memory) {
    std::erase_if(found, [&](const MemoryRange& other) { return other.overlaps(memory); });
  };
  for (auto* const known : {arguments, keywords, module}) {
    for_each_tensor(
        known,
        [&](const at::Tensor& tensor) {
          if (has_memory(tensor)) leave_out(memory_of(tensor));
        },
        leave_out);
  }
  return !found.empty();
}

bool is_unobserved(observe::Evidence seen, PyObject* module, PyObject* arguments, PyObject* keywords,
                   PyObject* output) {
  const bool handed_out = (seen & observe::kReadOut) != 0;
  if (!observe::module_may_bypass(seen)) return false;
  std::vector<MemoryRange> unknown;
  for_each_tensor(
      output,
      [&](const at::Tensor& tensor) {
        // A single number may be a constant: torch.tensor(0.0).
        if (has_memory(tensor) && (tensor.numel() > 1 || (handed_out && tensor.numel() == 1))) {
          unknown.push_back(memory_of(tensor));
        }
      },
      [](const MemoryRange& /*array*/) {});
  return is_any_new(std::move(unknown), module, arguments, keywords);
}

}  // namespace roofprof::python
