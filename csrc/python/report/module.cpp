// The module _report, and its small parts.

#include <pybind11/stl.h>

#include <string>
#include <string_view>

#include "analysis/permutation_test.h"
#include "core/counter_metrics.h"
#include "ops/registry.h"
#include "python/report/bindings.h"
#include "report/tables.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

AnyDict listed(std::string_view family, const ops::OpCost& line) {
  using namespace pybind11::literals;
  AnyDict cost("family"_a = family, "op"_a = line.op, "formula"_a = line.formula, "source"_a = line.source,
               "scalars"_a = line.scalars, "free"_a = ops::is_free(line));
  return cost;
}

// Returns each line: its family ("own": the user's), op, formula, source, scalars (comma-separated), and whether it is
// free.
AnyDicts op_costs() {
  AnyDicts costs;
  for (const auto& family : ops::families()) {
    for (const auto& line : family.costs) costs.append(listed(family.name, line));
  }
  for (const auto& line : ops::own_costs()) costs.append(listed("own", line));
  return costs;
}

// The base names of the metrics that counters are made of, on whatever chip, by the set that they belong to.
py::typing::Dict<py::str, py::typing::List<py::str>> counter_metrics() {
  py::typing::Dict<py::str, py::typing::List<py::str>> sets;
  for (const auto& line : metric_table()) {
    const char* const set = line.set == MetricSet::memory ? "memory" : line.set == MetricSet::sass ? "sass" : "tensor";
    auto names = sets.contains(set) ? sets[set].cast<py::list>() : py::list();
    for (const auto& sum : line.alternatives) {
      for (const auto& term : sum) {
        const py::str name{std::string(term.metric)};
        if (!names.contains(name)) names.append(name);
      }
    }
    sets[set] = names;
  }
  return sets;
}

}  // namespace
}  // namespace roofprof::python

PYBIND11_MODULE(_report, module) {
  using namespace roofprof;
  module.doc() =
      "The compiled part of roofprof that needs no torch. Use the roofprof package; names in here may change.";
  python::bind_document(module);
  python::bind_ceilings(module);
  python::bind_rows(module);
  python::bind_report(module);
  python::bind_prediction(module);
  module.def("adjusted_p_values", &adjusted_p_values, py::arg("before"), py::arg("after"), py::arg("step_ns"));
  module.def("op_costs", &python::op_costs);
  module.attr("GAINS_OVERLAP") = py::str(kGainsOverlap.data(), kGainsOverlap.size());
  module.def("counter_metrics", &python::counter_metrics);
}
