// What each operator is known to cost.

#include <pybind11/stl.h>

#include <string>

#include "bindings.h"
#include "ops/registry.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

py::list op_costs() {
  using namespace pybind11::literals;
  py::list costs;
  for (const auto& family : ops::families()) {
    for (const auto& line : family.costs) {
      costs.append(py::dict("family"_a = family.name, "op"_a = line.op, "formula"_a = line.formula,
                            "source"_a = line.source, "scalars"_a = line.scalars, "free"_a = ops::is_free(line)));
    }
  }
  return costs;
}

}  // namespace

void bind_ops(py::module_& module) { module.def("op_costs", &op_costs); }

}  // namespace roofprof::python
