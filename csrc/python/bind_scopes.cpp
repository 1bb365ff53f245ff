// Marks in Python code: regions and declared work.

#include "bindings.h"
#include "observe/declared_work.h"
#include "observe/regions.h"
#include "read_data.h"

namespace py = pybind11;

namespace roofprof::python {

void bind_scopes(py::module_& module) {
  // `token` is the object that closes it.
  module.def(
      "open_region", [](std::string_view name, const py::object& token) { observe::open_region(name, token.ptr()); },
      py::arg("name"), py::arg("token"));
  module.def("check_name", &observe::check_name, py::arg("name"));
  module.def("is_region_open", &observe::is_region_open, py::arg("name"));
  module.def("close_region", [](const py::object& token) { observe::close_region(token.ptr()); }, py::arg("token"));

  module.def(
      "declare_work",
      [](std::string_view name, const py::dict& counts) { return observe::declare_work(name, read_work(counts)); },
      py::arg("name"), py::arg("counts"));
  module.def(
      "open_work",
      [](std::string_view name, const py::dict& counts, const py::object& token) {
        observe::open_work(name, read_work(counts), token.ptr());
      },
      py::arg("name"), py::arg("counts"), py::arg("token"));
  module.def("close_work", [](const py::object& token) { observe::close_work(token.ptr()); }, py::arg("token"));
}

}  // namespace roofprof::python
