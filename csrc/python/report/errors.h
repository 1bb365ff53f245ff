#pragma once
// What C++ refuses, as Python says it.

#include <pybind11/pybind11.h>

#include <exception>
#include <stdexcept>
#include <utility>

namespace roofprof::python {

// In functions of the module that calls this, a std::invalid_argument is a roofprof.Error.
inline void translate_errors() {
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(std::move(thrown));
    } catch (const std::invalid_argument& error) {
      const pybind11::object type = pybind11::module_::import("roofprof.errors").attr("Error");
      PyErr_SetString(type.ptr(), error.what());
    }
  });
}

}  // namespace roofprof::python
