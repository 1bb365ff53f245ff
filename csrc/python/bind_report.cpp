// Reports: coverage, printers, what they are read from.

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <iterator>

#include "bindings.h"
#include "roofprof/report.h"
#include "values/phrases.h"
#include "values/profile_data.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

void bind_coverage(py::module_& module) {
  py::class_<UncostedOp>(module, "UncostedOp")
      .def_readonly("op", &UncostedOp::op)
      .def_readonly("calls", &UncostedOp::calls)
      .def_readonly("percent_of_time", &UncostedOp::percent_of_time)
      .def_readonly("modules", &UncostedOp::modules)
      .def_readonly("module_count", &UncostedOp::module_count)
      .def("__repr__", [](const UncostedOp& self) {
        return "<UncostedOp " + self.op + ": " + counted(self.calls, "call") + " in " +
               counted(self.module_count, "module") + ">";
      });
  py::class_<Coverage>(module, "Coverage")
      .def_readonly("uncosted", &Coverage::uncosted)
      .def_readonly("uncosted_ops", &Coverage::uncosted_ops)
      .def_readonly("uncalled_modules", &Coverage::uncalled_modules)
      .def_readonly("unattributed_kernels", &Coverage::unattributed_kernels)
      .def_readonly("dropped_records", &Coverage::dropped_records)
      .def_readonly("unobserved", &Coverage::unobserved)
      .def_readonly("notes", &Coverage::notes)
      .def("__repr__", [](const Coverage& self) {
        return "<Coverage: " + counted(std::ssize(self.uncosted), "uncosted op") + ", " +
               std::to_string(self.unobserved.size()) + " unobserved, " +
               counted(std::ssize(self.uncalled_modules), "uncalled module") + ", " +
               counted(std::ssize(self.notes), "note") + ">";
      });
}

}  // namespace

void bind_report(py::module_& module) {
  bind_coverage(module);
  module.def("report_from_json", [](std::string_view text) { return Report::from_json_text(text); }, py::arg("text"));
  py::class_<Report>(module, "Report")
      .def_property_readonly("rows", &Report::rows)
      .def_property_readonly("total", &Report::total)
      .def("row", &Report::row, py::arg("path"))
      .def("group", [](const Report& self, const std::vector<std::string>& keys) { return self.group(keys); })
      .def_property_readonly("kernels", &Report::kernels)
      .def_property_readonly("coverage", &Report::coverage)
      .def_property_readonly("ceilings", &Report::ceilings)
      .def_property_readonly("environment",
                             [](const Report& self) {
                               py::dict result;
                               for (const auto& [key, value] : self.environment())
                                 result[py::str(key)] = py::cast(value);
                               return result;
                             })
      .def_property_readonly("model", [](const Report& self) { return self.data().model; })
      .def_property_readonly("device", [](const Report& self) { return self.data().device; })
      .def_property_readonly("scope", [](const Report& self) { return self.data().scope; })
      .def_property_readonly("partial", &Report::partial)
      .def_property_readonly("steps", &Report::steps)
      .def_property_readonly("runs_ns", &Report::run_times_ns)
      .def_property_readonly("bare_ns", &Report::bare_times_ns)
      .def(
          "table",
          [](const Report& self, std::optional<std::int64_t> depth, std::string sort, std::vector<std::string> columns,
             std::string by, std::int64_t width, std::int64_t limit, bool legend, bool for_shell) {
            return self.table(
                {depth, std::move(sort), std::move(columns), std::move(by), width, limit, legend, for_shell});
          },
          py::arg("depth"), py::arg("sort"), py::arg("columns"), py::arg("by"), py::arg("width"), py::arg("limit"),
          py::arg("legend"), py::arg("for_shell") = false)
      .def("to_json", &Report::to_json)
      .def("to_csv", &Report::to_csv, py::arg("by"))
      .def("write_json", &Report::write_json, py::arg("path"))
      .def("write_csv", &Report::write_csv, py::arg("path"), py::arg("by"))
      .def(py::pickle([](const Report& self) { return self.to_json(); },
                      [](const std::string& text) { return Report::from_json_text(text); }));
}

}  // namespace roofprof::python
