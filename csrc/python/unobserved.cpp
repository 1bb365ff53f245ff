#include "unobserved.h"

#include <algorithm>
#include <vector>

#include "tensor_walk.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

constexpr std::size_t kMaxTensorsInOutput = 4096;

// Calls see(tensor) for each; of modules and other objects, for their attributes'.
template <typename See>
class EachTensor {
 public:
  explicit EachTensor(See see) : see_(std::move(see)) {}

  bool full() const { return seen_ >= kMaxTensorsInOutput; }
  void visit(const at::Tensor& tensor) {
    ++seen_;
    see_(tensor);
  }
  void open(PyObject* object, int nesting) {
    if (nesting >= kMaxNesting / 2 || PyObject_HasAttrString(object, "__dict__") == 0) return;
    const auto attributes = py::reinterpret_steal<py::object>(PyObject_GetAttrString(object, "__dict__"));
    walk_tensors(attributes.ptr(), *this, nesting + 1);
    PyErr_Clear();
  }

 private:
  See see_;
  std::size_t seen_ = 0;
};

template <typename See>
void for_each_tensor(PyObject* value, See see) {
  EachTensor<See> each(std::move(see));
  walk_tensors(value, each);
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
  if (!observe::module_may_bypass(seen)) return false;
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
