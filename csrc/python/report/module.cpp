// The module _report, and its small parts.

#include <pybind11/stl.h>

#include <string_view>

#include "analysis/permutation_test.h"
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
}  // namespace roofprof::python

PYBIND11_MODULE(_report, module) {
  using namespace roofprof;
  module.doc() =
      "The compiled part of roofprof that needs no torch. Use the roofprof package; names in here may change.";
  python::bind_ceilings(module);
  python::bind_rows(module);
  python::bind_report(module);
  python::bind_document(module);
  python::bind_prediction(module);
  module.def("adjusted_p_values", &adjusted_p_values, py::arg("before"), py::arg("after"), py::arg("step_ns"));
  module.def("op_costs", &python::op_costs);
}
