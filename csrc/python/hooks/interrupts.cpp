#include "interrupts.h"

#include <csignal>
#include <string>

namespace py = pybind11;

namespace roofprof::python {
namespace {

bool interrupt_waits = false;  // guarded by the GIL

PyObject* keep_interrupt(PyObject* /*self*/, PyObject* /*arguments*/) {
  interrupt_waits = true;
  Py_RETURN_NONE;
}

PyMethodDef keep_interrupt_definition = {"keep_interrupt", &keep_interrupt, METH_VARARGS, nullptr};

}  // namespace

InterruptsHeld::InterruptsHeld() {
  const py::error_scope raised;
  const py::module_ signals = py::module_::import("_signal");
  const py::object handler = signals.attr("getsignal")(SIGINT);
  if (PyCallable_Check(handler.ptr()) == 0) return;  // the system's own, or none
  const auto keep = py::reinterpret_steal<py::object>(PyCFunction_New(&keep_interrupt_definition, nullptr));
  const py::object signal = signals.attr("signal");
  auto replaced = py::reinterpret_steal<py::object>(PyObject_CallFunction(signal.ptr(), "iO", SIGINT, keep.ptr()));
  if (!replaced && PyErr_ExceptionMatches(PyExc_ValueError) == 0) {
    came_before_ = true;  // handled first, and once
    PyErr_Clear();
    replaced = py::reinterpret_steal<py::object>(PyObject_CallFunction(signal.ptr(), "iO", SIGINT, keep.ptr()));
  }
  PyErr_Clear();  // not the main thread
  if (!replaced) return;
  signal_ = signal;
  handler_ = handler;
}

InterruptsHeld::~InterruptsHeld() {
  if (!signal_) return;
  const py::error_scope raised;
  // It looks for interrupts before it replaces the handler.
  Py_XDECREF(PyObject_CallFunction(signal_.ptr(), "iO", SIGINT, handler_.ptr()));
  PyErr_Clear();
  if (std::exchange(interrupt_waits, false) || came_before_) PyErr_SetInterrupt();
}

py::object uninterrupted(const py::function& method) {
  const std::string doc = method.doc().is_none() ? std::string() : py::str(method.doc()).cast<std::string>();
  const py::cpp_function held(
      [method](const py::args& args, const py::kwargs& keywords) {
        const InterruptsHeld interrupts;
        return py::object(method(*args, **keywords));
      },
      py::name(py::str(method.attr("__name__")).cast<std::string>().c_str()), doc.c_str());
  return py::reinterpret_steal<py::object>(PyInstanceMethod_New(held.ptr()));
}

py::object Uninterrupted::enter() const {
  const InterruptsHeld interrupts;
  return inner_.attr("__enter__")();
}

py::object Uninterrupted::exit(const py::args& raised) const {
  const InterruptsHeld interrupts;
  return inner_.attr("__exit__")(*raised);
}

}  // namespace roofprof::python
