// The module _report, and its small parts.

#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/permutation_test.h"
#include "core/counter_metrics.h"
#include "core/kernel_names.h"
#include "ops/registry.h"
#include "python/report/bindings.h"
#include "python/report/errors.h"
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

constexpr std::array<std::pair<MetricSet, std::string_view>, 3> kMetricSets = {
    {{MetricSet::memory, "memory"}, {MetricSet::sass, "sass"}, {MetricSet::tensor, "tensor"}}};

std::string sum_of(std::string_view metric) { return std::string(metric) + ".sum"; }

// The base names of the metrics that counters are made of, on whatever chip, by the set that they belong to.
py::typing::Dict<py::str, py::typing::List<py::str>> counter_metrics() {
  py::typing::Dict<py::str, py::typing::List<py::str>> sets;
  for (const auto& line : metric_table()) {
    const auto set = py::str(std::string(kMetricSets.at(static_cast<std::size_t>(line.set)).second));
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

using Terms = py::typing::List<py::typing::Tuple<py::int_, py::str>>;
using Metrics = py::typing::List<py::typing::Tuple<py::str, py::bool_>>;

// Each counter by what gives it where these metrics were read: its name, its set, the terms (weight, metric) of its
// sum, none where some were not read, and the metrics of the sum that most chips have, each with whether it may lack.
py::typing::List<py::typing::Tuple<py::str, py::str, Terms, Metrics>> counters_of(
    const std::set<std::string>& metrics) {
  py::typing::List<py::typing::Tuple<py::str, py::str, Terms, Metrics>> counters;
  for (const auto& [set, name] : kMetricSets) {
    for (const auto& counter : resolve(set, "", [&](auto metric) { return metrics.contains(sum_of(metric)); })) {
      py::list terms;
      py::list usual;
      for (const auto& term : counter.terms) terms.append(py::make_tuple(term.weight, sum_of(term.metric)));
      const auto which = static_cast<std::size_t>(counter.source.counter);
      for (const auto& term : metric_table()[which].alternatives.front()) {
        usual.append(py::make_tuple(sum_of(term.metric), term.where_present));
      }
      counters.append(py::make_tuple(kCounterNames.at(which), name, terms, usual));
    }
  }
  return counters;
}

}  // namespace
}  // namespace roofprof::python

PYBIND11_MODULE(_report, module) {
  using namespace roofprof;
  module.doc() =
      "The compiled part of roofprof that needs no torch. Use the roofprof package; names in here may change.";
  python::translate_errors();
  python::bind_document(module);
  python::bind_ceilings(module);
  python::bind_rows(module);
  python::bind_report(module);
  python::bind_columns(module);
  python::bind_prediction(module);
  module.def("adjusted_p_values", &adjusted_p_values, py::arg("before"), py::arg("after"), py::arg("step_ns"));
  module.def("op_costs", &python::op_costs);
  module.attr("GAINS_OVERLAP") = py::str(kGainsOverlap.data(), kGainsOverlap.size());
  module.def("counter_metrics", &python::counter_metrics);
  module.def("counters_of", &python::counters_of, py::arg("metrics"));
  module.def("demangled", &demangled, py::arg("name"));
}
