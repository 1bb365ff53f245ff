#pragma once
// Looks at objects of the user's, and finds the tensors in any nest of containers, without running the user's code: no
// properties, no __getattr__, no __class__, no metaclass.

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

#include <exception>
#include <vector>

#include "observe/operators/op_signature.h"

namespace roofprof::python {

// Returns whether the object's type is a tensor's: a proxy that only says so is not a tensor.
inline bool is_tensor(PyObject* object) {
  return THPVariableClass != nullptr &&
         PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(THPVariableClass)) != 0;
}

// Returns the object's own attributes; null where it has no place for any.
inline pybind11::object attributes_of(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyType_Check(object) || (type->tp_dictoffset == 0 && !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))) return {};
  auto attributes = pybind11::reinterpret_steal<pybind11::object>(PyObject_GenericGetDict(object, nullptr));
  if (!attributes) PyErr_Clear();
  return attributes;
}

// Returns the entry of a class or one of its bases under a name; borrowed, null where they have none.
inline PyObject* in_class(PyTypeObject* type, const char* name) {
  const auto key = pybind11::reinterpret_steal<pybind11::object>(PyUnicode_InternFromString(name));
  return _PyType_Lookup(type, key.ptr());
}

// Returns the value of a dataclass's field, or of a slot; null where it was never set.
inline pybind11::object field_of(PyObject* object, const pybind11::object& attributes, PyObject* name) {
  if (attributes) {
    if (auto* const value = PyDict_GetItemWithError(attributes.ptr(), name)) {
      return pybind11::reinterpret_borrow<pybind11::object>(value);
    }
  }
  PyObject* const slot = _PyType_Lookup(Py_TYPE(object), name);
  if (slot == nullptr || Py_TYPE(slot) != &PyMemberDescr_Type) return {};
  auto value = pybind11::reinterpret_steal<pybind11::object>(
      Py_TYPE(slot)->tp_descr_get(slot, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
  if (!value) PyErr_Clear();
  return value;
}

// Enough for the containers that people make, and an end for those that hold themselves.
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
    } catch (const std::exception&) {  // a subclass that refuses to give its sizes
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

// A visitor of walk_tensors: collects the blocks of memory (observe/memory/allocations.h) that a call's outputs are in.
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
