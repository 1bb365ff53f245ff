#pragma once
// From Python values (a report's JSON, the model tree) to the structs of core. Wrong types and missing keys raise
// KeyError, TypeError or ValueError; Report.from_json turns them into one sentence.

#include <pybind11/pybind11.h>

#include <vector>

#include "core/profile_data.h"

namespace roofprof::python {

Work read_work(const pybind11::dict& work);
Module read_module(const pybind11::dict& module);
std::vector<Module> read_modules(const pybind11::list& modules);
Ceilings read_ceilings(const pybind11::dict& ceilings);
Environment read_environment(const pybind11::dict& environment);
ProfileData read_profile_data(const pybind11::dict& report);

}  // namespace roofprof::python
