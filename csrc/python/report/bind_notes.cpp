// Notes: data that still reads as its sentence where a string is looked for.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>

#include "core/note_codes.h"
#include "python/report/bindings.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

Note note_of(const std::string& code, std::string text, std::vector<std::string> where) {
  const std::size_t index = index_of_note(code);
  if (index == kNoteKinds.size()) throw std::invalid_argument("there is no note with the code '" + code + "'");
  return make_note(kNoteKinds[index], std::move(text), std::move(where));
}

}  // namespace

void bind_notes(py::module_& module) {
  py::class_<Note>(module, "Note")
      .def(py::init(&note_of), py::arg("code"), py::arg("text"), py::arg("where") = std::vector<std::string>())
      .def_property_readonly("level", [](const Note& self) { return std::string(name_of(self.level)); })
      .def_readonly("code", &Note::code)
      .def_readonly("where", &Note::where)
      .def_readonly("text", &Note::text)
      .def_readonly("count", &Note::count)
      .def("__str__", [](const Note& self) { return self.text; })
      .def("__repr__", repr_of(+[](const Note& self) { return "<Note " + self.code + ": " + self.text + ">"; }))
      .def("__contains__",
           [](const Note& self, const std::string& part) { return self.text.find(part) != std::string::npos; })
      .def(
          "__eq__", [](const Note& self, const Note& other) { return self == other; }, py::is_operator())
      .def(
          "__eq__", [](const Note& self, const std::string& text) { return self.text == text; }, py::is_operator())
      .def("__hash__", [](const Note& self) { return py::hash(py::str(self.text)); });
  // Returns level and meaning by code.
  module.def("note_kinds", [] {
    py::dict kinds;
    for (const auto& kind : kNoteKinds) {
      kinds[py::str(std::string(kind.code))] =
          py::make_tuple(std::string(name_of(kind.level)), std::string(kind.meaning));
    }
    return kinds;
  });
}

}  // namespace roofprof::python
