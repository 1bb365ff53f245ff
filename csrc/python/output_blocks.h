#pragma once
// The blocks of memory (observe/memory/allocations.h) that a call's outputs are in.

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

#include <vector>

#include "observe/operators/dispatch_path.h"
#include "tensor_walk.h"

namespace roofprof::python {

// A visitor of walk_tensors.
class OutputBlocks {
 public:
  // False where something among the outputs may hold tensors that were not found.
  bool known() const { return known_; }
  const std::vector<const void*>& all() const { return blocks_; }

  bool full() const { return !known_; }
  void refused() { known_ = false; }
  void visit(const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    // Sparse ones have no storage, and subclasses keep their tensors elsewhere. (storage() may throw.)
    const auto* impl = tensor.unsafeGetTensorImpl();
    const auto& storage = impl->unsafe_storage();
    const bool subclass = impl->key_set().has(c10::DispatchKey::Python) && !observe::is_fake(*impl);
    if (subclass || !storage) {
      known_ = false;
      return;
    }
    const auto* block = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get_context();
    if (block != nullptr) {
      blocks_.push_back(block);
    } else if (tensor.numel() > 0) {
      known_ = false;  // a subclass, which keeps its tensors elsewhere
    }
  }
  void open(PyObject* object, int nesting) {
    const bool plain = object == Py_None || PyLong_Check(object) || PyFloat_Check(object) || PyUnicode_Check(object) ||
                       PyBytes_Check(object) || PyComplex_Check(object);
    if (plain) return;
    const auto values = attributes_of(object);
    if (in_class(Py_TYPE(object), "__dataclass_fields__") == nullptr || !values) {
      known_ = false;
    } else {
      walk_tensors(values.ptr(), *this, nesting + 1);
    }
  }

 private:
  std::vector<const void*> blocks_;
  bool known_ = true;
};

}  // namespace roofprof::python
