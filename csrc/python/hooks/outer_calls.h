#pragma once
// Calls of torch.nn modules from outside of all others, as global hooks that are plain C functions.

#include <pybind11/pybind11.h>

#include <cstdint>

namespace roofprof::python {

// Asks Python, as a call begins, if the call matters. If it does, nothing is asked of the calls inside, and Python
// learns when it ends. Python's part runs as if torch's compiler were not there, which would compile it too.
class OuterCalls {
 public:
  // `begin(module)` says whether the call matters, `end(module)` is called after such a one.
  OuterCalls(pybind11::object begin, pybind11::object end);

  // Returns false with Python's error set where `begin` raised. Hooks that `begin` registered are called for this call
  // as well.
  bool enter(PyObject* module, PyObject* arguments);
  bool leave(PyObject* module);
  // Drops the call that is under way on this thread: `end` is not called for it.
  void forget();

  // Return callables for torch.nn.modules.module.register_module_forward_(pre_)hook; they keep `owner` alive.
  static pybind11::object enter_hook(const pybind11::object& owner);
  static pybind11::object leave_hook(const pybind11::object& owner);

 private:
  pybind11::object begin_;
  pybind11::object end_;
  pybind11::dict pre_hooks_;         // torch's
  pybind11::object set_eval_frame_;  // torch's compiler on this thread: takes None for "off", and returns what was on
};

}  // namespace roofprof::python
