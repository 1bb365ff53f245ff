// Documents: what reports and Python's results show, as data and as text.

#include <pybind11/stl.h>

#include <algorithm>

#include "core/phrases.h"
#include "python/report/bindings.h"
#include "report/document.h"

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

std::vector<std::string> utf8_of_each(const std::vector<py::str>& texts) {
  std::vector<std::string> each;
  each.reserve(texts.size());
  for (const auto& text : texts) each.push_back(utf8_of(text));
  return each;
}

Role role_named(std::string_view name) {
  const auto found = std::ranges::find(kRoleNames, name);
  if (found == kRoleNames.end()) {
    throw py::value_error("a paragraph is one of " + listed(kRoleNames) + ", not '" + std::string(name) + "'");
  }
  return static_cast<Role>(found - kRoleNames.begin());
}

void add_table(Document& document, std::vector<TableColumn> columns, const std::vector<std::vector<Cell>>& rows,
               std::vector<std::size_t> rules, const std::vector<std::string>& marks,
               const std::vector<py::str>& remarks, const py::str& title, std::string if_dropped) {
  Table table{std::move(columns)};
  if (!marks.empty() && marks.size() != rows.size()) throw py::value_error("marks need one for each row");
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].size() != table.columns.size()) throw py::value_error("a row needs one cell for each column");
    table.add(rows[row], marks.empty() ? "" : marks[row]);
  }
  table.rules = std::move(rules);
  table.remarks = utf8_of_each(remarks);
  table.title = utf8_of(title);
  table.if_dropped = std::move(if_dropped);
  document.add(std::move(table));
}

void bind_blocks(py::module_& module) {
  py::class_<Heading>(module, "Heading").def_property_readonly("text", [](const Heading& self) {
    return printable(self.text);
  });
  py::class_<Paragraph>(module, "Paragraph")
      .def_property_readonly(
          "label", [](const Paragraph& self) { return printable(self.label); },
          R"(What it is about; "" where it goes on with the paragraph before.)")
      .def_property_readonly(
          "text", [](const Paragraph& self) { return printable(self.content()); },
          R"(The whole text; of a list its items, joined by "; ".)")
      .def_property_readonly("items",
                             [](const Paragraph& self) {
                               std::vector<std::string> items;
                               for (const auto& item : self.items) items.push_back(printable(item));
                               return items;
                             })
      .def_property_readonly(
          "role", [](const Paragraph& self) { return kRoleNames.at(static_cast<std::size_t>(self.role)); },
          R"("statement", "title", "warning", "note", or "hint": how to see more, as the reader of a text would.)")
      .def_readonly("apart", &Paragraph::apart, "Whether an empty line stands before it.");
  py::class_<Cell>(module, "Cell",
                   "A cell: its text as shown, its value where that is a number, and its level in a tree.\n\n"
                   R"(mark: what sort of value it is, which the text shows as well: ">=", "*"; or a word that pages )"
                   "colour by.")
      .def(py::init([](const py::str& text, std::optional<double> value, const std::string& mark, std::size_t level) {
             Cell cell(utf8_of(text), value, mark);
             cell.level = level;
             return cell;
           }),
           py::arg("text"), py::arg("value") = py::none(), py::arg("mark") = "", py::arg("level") = 0)
      .def_readonly("text", &Cell::text)
      .def_readonly("value", &Cell::value)
      .def_readonly("mark", &Cell::mark)
      .def_readonly("level", &Cell::level);
  py::implicitly_convertible<py::str, Cell>();
  py::class_<TableColumn>(
      module, "TableColumn",
      "A column of a table.\n\n"
      "left: alignment; min_width: it may be cut down to that, 0: never; drop_rank: where the table "
      "is too wide, the column of the largest rank goes first, those of 0 stay; figure: the name of "
      R"(what it shows in the table of figures, "" where that is none.)")
      .def(py::init([](const py::str& heading, bool left, std::size_t min_width, int drop_rank, std::string figure) {
             return TableColumn{utf8_of(heading), left, min_width, drop_rank, Keep::both_ends, std::move(figure)};
           }),
           py::arg("heading"), py::arg("left") = false, py::arg("min_width") = 0, py::arg("drop_rank") = 0,
           py::arg("figure") = "")
      .def_property_readonly("heading", [](const TableColumn& self) { return printable(self.heading); })
      .def_readonly("left", &TableColumn::left)
      .def_readonly("figure", &TableColumn::figure);
  py::class_<Table>(module, "Table")
      .def_readonly("title", &Table::title, "What pages call it; text shows none.")
      .def_readonly("columns", &Table::columns)
      .def_property_readonly("rows",
                             [](const Table& self) {
                               std::vector<std::vector<Cell>> rows;
                               for (const auto& row : self.rows) rows.push_back(row.cells);
                               return rows;
                             })
      .def_property_readonly(
          "marks",
          [](const Table& self) {
            std::vector<std::string> marks;
            for (const auto& row : self.rows) marks.push_back(row.mark);
            return marks;
          },
          R"(For each row "total", "" or a word that pages colour by.)")
      .def_readonly("rules", &Table::rules, "The rows that a line stands before.")
      .def_property_readonly(
          "remarks",
          [](const Table& self) {
            std::vector<std::string> remarks;
            for (const auto& remark : self.remarks) remarks.push_back(printable(remark));
            return remarks;
          },
          "What it leaves out, right below it.");
}

}  // namespace

void bind_document(py::module_& module) {
  bind_blocks(module);
  py::class_<Document>(module, "Document", "Headings, paragraphs and tables, in their order.")
      .def(py::init())
      .def_property_readonly("blocks", [](const Document& self) { return self.blocks; })
      .def(
          "add_heading", [](Document& self, const py::str& text) { self.add(Heading{utf8_of(text)}); }, py::arg("text"))
      .def(
          "add_title", [](Document& self, const py::str& text) { self.add_title(utf8_of(text)); }, py::arg("text"))
      .def(
          "add_paragraph",
          [](Document& self, const py::str& label, const py::str& text, const std::vector<py::str>& items, bool apart,
             const std::string& role) {
            self.add(Paragraph{utf8_of(label), utf8_of(text), utf8_of_each(items), role_named(role), apart});
          },
          py::arg("label"), py::arg("text") = "", py::arg("items") = std::vector<py::str>(), py::arg("apart") = false,
          py::arg("role") = "statement")
      .def("add_table", &add_table, py::arg("columns"), py::arg("rows"), py::arg("rules") = std::vector<std::size_t>(),
           py::arg("marks") = std::vector<std::string>(), py::arg("remarks") = std::vector<py::str>(),
           py::arg("title") = "", py::arg("if_dropped") = "left out for the width: {}",
           "Add a table. A row has one cell for each column; rules: rows that a line stands before; marks: of each "
           "row.\n\n"
           R"(if_dropped: a remark where columns find no room; "{}" stands for their headings.)")
      .def(
          "text", [](const Document& self, std::size_t width) { return render_text(self, width); },
          py::arg("width") = 120,
          "Return the text, with empty lines around tables and headings. A width of 0: as wide as it takes.")
      .def("markdown", &render_markdown);
  module.def("printable", [](const py::str& text) { return printable(utf8_of(text)); }, py::arg("text"));
  module.def("printable_lines", [](const py::str& text) { return printable_lines(utf8_of(text)); }, py::arg("text"));
}

}  // namespace roofprof::python
