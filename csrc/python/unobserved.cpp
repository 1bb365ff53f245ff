#include "unobserved.h"

#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <vector>

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Bounds for what is looked at: enough for people's containers.
constexpr std::size_t kMaxTensors = 4096;
constexpr int kMaxNesting = 6;

// Calls visit(tensor) for the tensors in any nest of tuples, lists, dicts and, of modules, attributes.
template <typename Visit>
class TensorWalk {
 public:
  explicit TensorWalk(Visit visit) : visit_(std::move(visit)) {}

  void walk(PyObject* value, int nesting = 0) {
    if (value == nullptr || nesting > kMaxNesting || seen_ >= kMaxTensors) return;
    if (THPVariable_Check(value)) {
      ++seen_;
      visit_(THPVariable_Unpack(value));
    } else if (PyTuple_Check(value)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) walk(PyTuple_GET_ITEM(value, i), nesting + 1);
    } else if (PyList_Check(value)) {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) walk(PyList_GET_ITEM(value, i), nesting + 1);
    } else if (PyDict_Check(value)) {
      PyObject* key = nullptr;
      PyObject* item = nullptr;
      for (Py_ssize_t position = 0; PyDict_Next(value, &position, &key, &item);) walk(item, nesting + 1);
    } else if (PyObject_HasAttrString(value, "__dict__") != 0 && nesting < kMaxNesting / 2) {
      const auto attributes = py::reinterpret_steal<py::object>(PyObject_GetAttrString(value, "__dict__"));
      if (attributes) walk(attributes.ptr(), nesting + 1);
      PyErr_Clear();
    }
  }

 private:
  Visit visit_;
  std::size_t seen_ = 0;
};

template <typename Visit>
void for_each_tensor(PyObject* value, Visit visit) {
  TensorWalk<Visit>(std::move(visit)).walk(value);
}

struct Memory {
  const void* storage = nullptr;
  const char* begin = nullptr;
  const char* end = nullptr;
};

bool has_memory(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

Memory memory_of(const at::Tensor& tensor) {
  const auto& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  const auto* begin = static_cast<const char*>(storage.data());
  return {storage.unsafeGetStorageImpl(), begin, begin + storage.nbytes()};
}

// numpy hands the same memory back in another storage.
bool overlap(const Memory& a, const Memory& b) {
  return a.storage == b.storage || (a.begin != nullptr && a.begin < b.end && b.begin < a.end);
}

}  // namespace

bool is_unobserved(observe::Evidence seen, PyObject* module, PyObject* arguments, PyObject* keywords,
                   PyObject* output) {
  const bool handed_out = (seen & observe::kReadOut) != 0;
  if ((seen & observe::kWorkSeen) != 0 || (!handed_out && (seen & observe::kFreshMemory) == 0)) return false;
  std::vector<Memory> unknown;
  for_each_tensor(output, [&](const at::Tensor& tensor) {
    // A single number may be a constant: torch.tensor(0.0).
    if (has_memory(tensor) && (tensor.numel() > 1 || (handed_out && tensor.numel() == 1))) {
      unknown.push_back(memory_of(tensor));
    }
  });
  if (unknown.empty()) return false;
  for (auto* const known : {arguments, keywords, module}) {
    for_each_tensor(known, [&](const at::Tensor& tensor) {
      if (!has_memory(tensor)) return;
      const auto memory = memory_of(tensor);
      std::erase_if(unknown, [&](const Memory& other) { return overlap(memory, other); });
    });
  }
  return !unknown.empty();
}

}  // namespace roofprof::python
