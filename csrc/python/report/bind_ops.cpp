// Binds the known costs of operators.

#include <pybind11/stl.h>

#include <string_view>

#include "ops/registry.h"
#include "python/report/bindings.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

py::dict listed(std::string_view family, const ops::OpCost& line) {
  using namespace pybind11::literals;
  return py::dict("family"_a = family, "op"_a = line.op, "formula"_a = line.formula, "source"_a = line.source,
                  "scalars"_a = line.scalars, "free"_a = ops::is_free(line));
}

py::list op_costs() {
  py::list costs;
  for (const auto& family : ops::families()) {
    for (const auto& line : family.costs) costs.append(listed(family.name, line));
  }
  for (const auto& line : ops::own_costs()) costs.append(listed("own", line));
  return costs;
}

}  // namespace

void bind_ops(py::module_& module) { module.def("op_costs", &op_costs); }

}  // namespace roofprof::python
