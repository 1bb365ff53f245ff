#pragma once
// Decides if a module's output can have come from the ops that were seen in its call.

#include <pybind11/pybind11.h>

#include <vector>

#include "observe/numpy_exchange.h"
#include "observe/rule/evidence.h"

namespace roofprof::python {

// `seen`: what was seen inside the call. `arguments` and `keywords` may be null. True where no op did any work, and yet
// the output holds memory that is neither the inputs' nor the module's own (parameters, buffers, attributes).
bool is_unobserved(observe::Evidence seen, PyObject* module, PyObject* arguments, PyObject* keywords, PyObject* output);

// Returns whether any of it is neither the inputs' memory nor the module's own.
bool is_any_new(std::vector<observe::MemoryRange> found, PyObject* module, PyObject* arguments, PyObject* keywords);

}  // namespace roofprof::python
