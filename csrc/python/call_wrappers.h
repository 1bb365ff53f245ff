#pragma once
// The wrappers by which calls of modules come that torch does not announce: `module.forward(x)`, and classes with a
// `__call__` of their own. torch's hooks know neither.

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>
#include <vector>

namespace roofprof::python {

class ModuleHooks;

// The place of a function in a class: the class, the attribute's name ("forward" or "__call__"), and true if it is the
// forward, by whichever name.
struct WrapperPlace {
  pybind11::object type;
  pybind11::str name;
  bool is_forward = true;
};

// Puts a callable (a wrapper) in the place of these functions of classes while this is open. A wrapper reports the call
// to the sessions whose wrappers are open and calls the function. It looks like the function to Python, so signatures,
// sources, copies and pickles of modules stay as they are. What is not a Python function stays as it is. A function
// that others put into the class meanwhile stays, too.
class CallWrappers {
 public:
  explicit CallWrappers(std::vector<WrapperPlace> places) : places_(std::move(places)) {}
  ~CallWrappers();
  CallWrappers(const CallWrappers&) = delete;
  CallWrappers& operator=(const CallWrappers&) = delete;

  // Makes the wrappers report to `owner`, a ModuleHooks. Throws what Python raises, and leaves none open then.
  void open(const pybind11::object& owner);
  void close();
  // Lets calls through unreported until each hold() has its release().
  void hold() { ++held_; }
  void release() { --held_; }

  bool is_held() const { return held_ > 0; }
  ModuleHooks* hooks() const { return hooks_; }
  const pybind11::object& owner() const { return owner_; }

 private:
  std::vector<WrapperPlace> places_;
  std::vector<const WrapperPlace*> put_;
  pybind11::object owner_;
  ModuleHooks* hooks_ = nullptr;
  int held_ = 0;
};

// Makes `caller(forward, module, *args, **kwargs)` make the calls that wrappers report to sessions; None: they are made
// as they are.
void set_wrapper_caller(const pybind11::object& caller);

bool is_call_wrapper(PyObject* object);

// Notes that torch's hook reported a call of this module on this thread: its forward, which runs next, is that call.
void announce_by_hook(const PyObject* module);
// Forgets that where the call ended before its forward began.
void forget_announced(const PyObject* module);

}  // namespace roofprof::python
