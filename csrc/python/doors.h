#pragma once
// The doors by which calls of modules come that torch does not announce: `module.forward(x)`, and classes with a
// `__call__` of their own. torch's hooks know neither.

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>
#include <vector>

namespace roofprof::python {

class ModuleHooks;

// The place of a function in a class: the class, the attribute's name ("forward" or "__call__"), and true if it is the
// forward, by whichever name.
struct DoorPlace {
  pybind11::object type;
  pybind11::str name;
  bool is_forward = true;
};

// Puts a callable (a door) in the place of these functions of classes while this is open. A door reports the call to
// the sessions whose doors are open and calls the function. It looks like the function to Python, so signatures,
// sources, copies and pickles of modules stay as they are. What is not a Python function stays as it is. A function
// that others put into the class meanwhile stays, too.
class Doors {
 public:
  explicit Doors(std::vector<DoorPlace> places) : places_(std::move(places)) {}
  ~Doors();
  Doors(const Doors&) = delete;
  Doors& operator=(const Doors&) = delete;

  // Makes the doors report to `owner`, a ModuleHooks. Throws what Python raises, and leaves none open then.
  void open(const pybind11::object& owner);
  void close();
  // Lets calls through unreported until each hold() has its release().
  void hold() { ++held_; }
  void release() { --held_; }

  bool is_held() const { return held_ > 0; }
  ModuleHooks* hooks() const { return hooks_; }
  const pybind11::object& owner() const { return owner_; }

 private:
  std::vector<DoorPlace> places_;
  std::vector<const DoorPlace*> put_;
  pybind11::object owner_;
  ModuleHooks* hooks_ = nullptr;
  int held_ = 0;
};

// Makes `caller(forward, module, *args, **kwargs)` make the calls that doors report to sessions; None: they are made as
// they are.
void set_caller_at_doors(const pybind11::object& caller);

bool is_door(PyObject* object);

// Notes that torch's hook reported a call of this module on this thread: its forward, which runs next, is that call.
void announce_by_hook(const PyObject* module);
// Forgets that where the call ended before its forward began.
void forget_announced(const PyObject* module);

}  // namespace roofprof::python
