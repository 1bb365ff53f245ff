#pragma once
// Finds the tensors in any nest of a call's containers.

#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

#include <exception>

#include "plain_access.h"

namespace roofprof::python {

// Enough for people's containers, and an end to those that hold themselves.
inline constexpr int kMaxNesting = 6;

// Visitor: bool full(); void visit(const at::Tensor&); void refused() where that threw; void open(PyObject* object,
// int nesting) for what is neither a tensor nor a container of Python's own. None of the user's code runs.
template <class Visitor>
void walk_tensors(PyObject* value, Visitor& visitor, int nesting = 0) {
  if (value == nullptr || nesting > kMaxNesting || visitor.full()) return;
  const auto inside = [&](PyObject* item) { walk_tensors(item, visitor, nesting + 1); };
  if (is_tensor(value)) {
    try {
      visitor.visit(THPVariable_Unpack(value));
    } catch (const std::exception&) {  // a subclass that refuses to tell its sizes
      PyErr_Clear();
      visitor.refused();
    }
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
