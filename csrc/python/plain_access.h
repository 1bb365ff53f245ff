#pragma once
// Looks at objects of the user's without running their code: no properties, no __getattr__, no __class__, no metaclass.

#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

namespace roofprof::python {

// Decides by the type alone: a proxy that says it is a tensor does not count as one.
inline bool is_tensor(PyObject* object) {
  return THPVariableClass != nullptr &&
         PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(THPVariableClass)) != 0;
}

// The attributes that an object has itself; null where it has no place for any.
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

// The value of a dataclass's field, or of a slot; null where it was never set.
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

}  // namespace roofprof::python
