#pragma once
// Finds the tensors in any nest of a call's containers.

#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

namespace roofprof::python {

// Enough for people's containers, and an end to those that hold themselves.
inline constexpr int kMaxNesting = 6;

// Visitor: bool full(); void visit(const at::Tensor&); void open(PyObject* object, int nesting) for what is neither a
// tensor nor a container of Python's own.
template <class Visitor>
void walk_tensors(PyObject* value, Visitor& visitor, int nesting = 0) {
  if (value == nullptr || nesting > kMaxNesting || visitor.full()) return;
  const auto inside = [&](PyObject* item) { walk_tensors(item, visitor, nesting + 1); };
  if (THPVariable_Check(value)) {
    visitor.visit(THPVariable_Unpack(value));
  } else if (PyTuple_Check(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) inside(PyTuple_GET_ITEM(value, i));
  } else if (PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) inside(PyList_GET_ITEM(value, i));
  } else if (PyDict_Check(value)) {
    PyObject* key = nullptr;
    PyObject* item = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(value, &position, &key, &item);) inside(item);
  } else {
    visitor.open(value, nesting);
  }
}

}  // namespace roofprof::python
