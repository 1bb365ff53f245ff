#pragma once
// What a device did, from a report's JSON.

#include <pybind11/pybind11.h>

#include "core/profile_data.h"

namespace roofprof::python {

void read_device(const pybind11::dict& report, ProfileData& data);

}  // namespace roofprof::python
