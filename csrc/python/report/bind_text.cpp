// Laid out text for pages of Python's that look like the report's tables.

#include <pybind11/stl.h>

#include "python/report/bindings.h"
#include "report/text_table.h"

namespace py = pybind11;

namespace roofprof::python {

namespace {

// Returns the text as UTF-8. Names of files may hold other bytes: Python keeps these as surrogates, which a std::string
// cannot be made of.
std::string utf8_of(const py::str& text) {
  const auto bytes = py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  if (!bytes) throw py::error_already_set();
  return bytes;
}

}  // namespace

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
  module.def("printable", [](const py::str& text) { return printable(utf8_of(text)); }, py::arg("text"));
}

}  // namespace roofprof::python
