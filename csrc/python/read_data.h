#pragma once
// Reads Python values (a cost function's counts, the model tree) into the structs of core. Wrong types and missing keys
// raise KeyError, TypeError or ValueError.

#include <pybind11/pybind11.h>

#include <vector>

#include "core/profile.h"

namespace roofprof::python {

Work read_work(const pybind11::dict& work);
Module read_module(const pybind11::dict& module);
std::vector<Module> read_modules(const pybind11::list& modules);
TokenCalls read_token_calls(const pybind11::dict& calls);

}  // namespace roofprof::python
