// The module _C.

#include <torch/csrc/utils/pybind.h>

#include <string>

#include "bindings.h"
#include "observe/operators/tensor_format.h"
#include "python/report/errors.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Returns the value that a symbolic size (FakeTensor with a ShapeEnv) has in this run, and adds no guard. The observer
// calls this on any thread.
std::optional<std::int64_t> hint_of(const c10::SymInt& size) {
  if (Py_IsInitialized() == 0) return std::nullopt;
  const py::gil_scoped_acquire gil;
  const py::error_scope raised_before;
  const py::object node = py::getattr(py::cast(size), "node", py::none());
  const py::object hint = py::getattr(node, "hint", py::none());
  // An unbacked size has None as its hint, a ragged one another symbolic integer.
  if (!py::isinstance<py::int_>(hint)) return std::nullopt;
  return hint.cast<std::int64_t>();
}

}  // namespace

}  // namespace roofprof::python

PYBIND11_MODULE(_C, module) {
  module.doc() = "The compiled part of roofprof. Use the roofprof package; names in here may change.";
  // A separate module, _report, has what needs no torch. Its names are found here too, and each of its types exists
  // once.
  for (const auto& [name, value] : py::dict(py::module_::import("roofprof._report").attr("__dict__"))) {
    if (!py::str(name).cast<std::string>().starts_with('_')) module.attr(name) = value;
  }
  roofprof::python::translate_errors();
  roofprof::python::bind_machine(module);
  roofprof::python::bind_session(module);
  roofprof::python::bind_run(module);
  roofprof::python::bind_costs(module);
  roofprof::python::bind_scripts(module);
  roofprof::python::bind_import(module);
  roofprof::observe::set_hint_reader(&roofprof::python::hint_of);
}
