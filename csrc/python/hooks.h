#pragma once
// Hooks that know no profile: C functions as hooks of torch's, since nothing costs less around each call; calls of
// modules from outside of all others; signals that wait.

#include <pybind11/pybind11.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace roofprof::python {

// Returns the object that a function of bind_hook() is bound to.
template <class Owner>
Owner& bound(PyObject* capsule) {
  return *static_cast<Owner*>(PyCapsule_GetPointer(capsule, nullptr));
}

// Returns `function` (METH_FASTCALL) as a Python callable whose self is a capsule that keeps the object alive.
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

// ---- A signal's handler can run, and raise, between any two steps of Python code. It waits where that would leave
// half of something undone.

// Makes all signals that have a handler of Python's wait while this object lives: their handlers run, and raise, at the
// next step of Python code after that. Does nothing on threads other than the main one, which runs no handlers.
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  bool replace(int number, const pybind11::object& handler);

  struct Held {
    int number;
    pybind11::object handler;
  };
  // A signal whose handler is to run, or what a handler raised.
  struct Waiting {
    int number = 0;
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* traceback = nullptr;
    static int come(void* waiting);
    static std::vector<Waiting*>& meanwhile();  // whose turn came while signals were held again: guarded by the GIL
  };
  pybind11::object getsignal_;
  pybind11::object signal_;  // empty: nothing is made to wait
  pybind11::object keep_;
  std::vector<Held> held_;
  std::vector<Waiting*> raised_;  // by handlers that ran before all were replaced, or after one was put back
};

// Returns a method of a class that does the same and makes signals wait. It is not a Python function, so no handler
// runs as it begins.
pybind11::object uninterrupted(const pybind11::function& method);

// Wraps a context manager so that its beginning and end are not interrupted; the code between them is.
class Uninterrupted {
 public:
  explicit Uninterrupted(pybind11::object inner) : inner_(std::move(inner)) {}
  pybind11::object enter() const;
  pybind11::object exit(const pybind11::args& raised) const;

 private:
  pybind11::object inner_;
};

// Asks Python if a call of a torch.nn module matters, for each call outside of all others. If it does, the calls inside
// it are not asked about, and Python learns when it ends. torch's compiler is off while Python's part runs, as it would
// compile that, too.
class OuterCalls {
 public:
  // `begin(module, arguments)` returns true if the call matters; `end(module)` is called after a call that does.
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
