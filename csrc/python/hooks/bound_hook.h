#pragma once
// C functions bound to a C++ object of Python's, for torch's hooks: nothing in between costs less around each call.

#include <pybind11/pybind11.h>

namespace roofprof::python {

// The object that a function of bind_hook() is bound to.
template <class Owner>
Owner& bound(PyObject* capsule) {
  return *static_cast<Owner*>(PyCapsule_GetPointer(capsule, nullptr));
}

// `function` with a capsule as its self, which keeps the object alive. METH_FASTCALL.
template <class Owner, auto function>
pybind11::object bind_hook(const char* name, const pybind11::object& owner) {
  static PyMethodDef definition = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
                                   METH_FASTCALL, nullptr};
  auto capsule =
      pybind11::reinterpret_steal<pybind11::object>(PyCapsule_New(&owner.cast<Owner&>(), nullptr, [](PyObject* self) {
        Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(self)));
      }));
  PyCapsule_SetContext(capsule.ptr(), owner.inc_ref().ptr());
  return pybind11::reinterpret_steal<pybind11::object>(PyCFunction_New(&definition, capsule.ptr()));
}

}  // namespace roofprof::python
