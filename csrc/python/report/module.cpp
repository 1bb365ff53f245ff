// The module _report, and its small parts.

#include <pybind11/stl.h>

#include <string_view>

#include "analysis/permutation_test.h"
#include "ops/registry.h"
#include "python/report/bindings.h"
#include "report/text_table.h"

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

// Returns the text as UTF-8. Names of files may hold other bytes: Python keeps these as surrogates, which a std::string
// cannot be made of.
std::string utf8_of(const py::str& text) {
  const auto bytes = py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  if (!bytes) throw py::error_already_set();
  return bytes;
}

// Binds laid out text for pages of Python's that look like the report's tables.
void bind_text(py::module_& module) {
  using Column = std::tuple<std::string, bool, std::size_t, int>;
  using Cell = std::pair<py::str, std::size_t>;
  module.def(
      "text_table",
      [](const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows, std::size_t ruled_from,
         std::size_t width) {
        std::vector<TextColumn> layout;
        for (const auto& [heading, left, min_width, drop_rank] : columns)
          layout.push_back({heading, left, min_width, drop_rank});
        TextTable table(std::move(layout));
        for (std::size_t row = 0; row < rows.size(); ++row) {
          if (rows[row].size() != columns.size()) throw py::value_error("a row needs one cell for each column");
          if (row == ruled_from) table.add_rule();
          std::vector<TextCell> cells;
          for (const auto& [text, level] : rows[row]) cells.emplace_back(utf8_of(text), level);
          table.add(std::move(cells));
        }
        std::vector<std::string> dropped;
        std::string text = table.render(width, &dropped);
        return std::pair(std::move(text), std::move(dropped));
      },
      py::arg("columns"), py::arg("rows"), py::arg("ruled_from"), py::arg("width"));
  module.def(
      "labelled_paragraph",
      [](const py::str& label, const py::str& text, std::size_t width) {
        return labelled_paragraph(utf8_of(label), utf8_of(text), width);
      },
      py::arg("label"), py::arg("text"), py::arg("width"));
  module.def(
      "printable", [](const py::str& text) { return printable(utf8_of(text)); }, py::arg("text"));
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
  python::bind_text(module);
  python::bind_prediction(module);
  module.def("adjusted_p_values", &adjusted_p_values, py::arg("before"), py::arg("after"), py::arg("step_ns"));
  module.def("op_costs", &python::op_costs);
}
