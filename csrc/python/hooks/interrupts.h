#pragma once
// Ctrl-C waits where half of a thing would be left undone: an interrupt can come between any two steps of Python code.

#include <pybind11/pybind11.h>

namespace roofprof::python {

// For as long as this is there, an interrupt that Python's handler would raise waits; then it is raised at the next
// step of Python code. On the main thread; others get none.
class InterruptsHeld {
 public:
  InterruptsHeld();
  ~InterruptsHeld();
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;

 private:
  pybind11::object signal_;  // empty: nothing is held
  pybind11::object handler_;
  bool came_before_ = false;
};

// Returns a method of a class that does the same and makes interrupts wait. It is not a Python function, so it is not
// interrupted as it begins.
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

}  // namespace roofprof::python
