#pragma once
// Translates C++ exceptions to Python's.

#include <pybind11/pybind11.h>

#include <exception>
#include <stdexcept>
#include <utility>

namespace roofprof::python {

// Makes the functions of the module that calls this raise roofprof.Error for std::invalid_argument.
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
