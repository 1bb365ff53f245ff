// The hints of symbolic sizes (FakeTensor with a ShapeEnv): what a size is in this run, without a guard on it.

#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "observe/operators/symbolic_size.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Called by the observer on any thread.
std::optional<std::int64_t> hint_of(const c10::SymInt& size) {
  if (Py_IsInitialized() == 0) return std::nullopt;
  const py::gil_scoped_acquire gil;
  const py::error_scope raised_before;
  const py::object node = py::getattr(py::cast(size), "node", py::none());
  const py::object hint = py::getattr(node, "hint", py::none());
  // None: unbacked; a symbolic integer again: a ragged size.
  if (!py::isinstance<py::int_>(hint)) return std::nullopt;
  return hint.cast<std::int64_t>();
}

}  // namespace

void bind_size_hints() { observe::set_hint_reader(&hint_of); }

}  // namespace roofprof::python
