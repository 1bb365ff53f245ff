#pragma once
// The blocks of memory (observe/memory/allocations.h) that a call's outputs are in.

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

#include <vector>

#include "observe/operators/output_blocks.h"
#include "tensor_walk.h"

namespace roofprof::python {

// A visitor of walk_tensors.
class OutputBlocks {
 public:
  // Returns false where something among the outputs may hold tensors that were not found.
  bool known() const { return known_; }
  const std::vector<const void*>& all() const { return blocks_; }

  bool full() const { return !known_; }
  void refused() { known_ = false; }
  void visit(const at::Tensor& tensor) {
    if (!observe::add_output_block(tensor, blocks_)) known_ = false;
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
