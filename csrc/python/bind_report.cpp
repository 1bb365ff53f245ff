// Reports: rows, groups, coverage, printers. Times become float seconds, missing figures None.

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "core/fields.h"
#include "core/profile_data.h"
#include "read_data.h"
#include "roofprof/report.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

std::string counted(std::size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

py::dict by_dtype(const std::array<std::int64_t, kDTypeCount>& operations, bool floating) {
  py::dict result;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (operations[i] != 0 && is_floating(dtype) == floating)
      result[py::str(std::string(name_of(dtype)))] = operations[i];
  }
  return result;
}

template <class Value>
py::object to_python(const Value& value, Unit unit) {
  if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) {
    return value ? to_python(*value, unit) : py::none();
  } else if constexpr (std::is_same_v<Value, std::int64_t> || std::is_same_v<Value, double>) {
    if (unit == Unit::nanoseconds) return py::float_(static_cast<double>(value) * 1e-9);
    return py::cast(value);
  } else if constexpr (std::is_same_v<Value, Bound>) {
    return py::str(to_string(value));
  } else {
    return py::cast(value);
  }
}

// Binds a list of fields (core/fields.h) as read-only properties; `prefix` and `part` reach into a row's self figures.
template <class Row, class Binding, class Part>
void bind_field(Binding& binding, const std::string& name, Unit unit, Part part) {
  binding.def_property_readonly(name.c_str(), [unit, part](const Row& row) { return to_python(part(row), unit); });
}

template <class Row, class Binding>
void bind_figures(Binding& binding) {
  for_each_figure([&](std::string_view name, Unit unit, auto member) {
    if (unit == Unit::by_dtype) return;  // below, floating-point types apart
    bind_field<Row>(
        binding, std::string(name), unit, [member](const Row& row) -> const auto& { return row.*member; });
  });
  binding.def_property_readonly("flops_by_dtype",
                                [](const Row& row) { return by_dtype(row.operations_by_dtype, true); });
  binding.def_property_readonly("int_ops_by_dtype",
                                [](const Row& row) { return by_dtype(row.operations_by_dtype, false); });
}

void bind_rows(py::module_& module) {
  py::class_<RooflineRow> row(module, "Row");
  bind_figures<RooflineRow>(row);
  for_each_row_field([&](std::string_view name, Unit unit, auto member) {
    bind_field<RooflineRow>(
        row, std::string(name), unit, [member](const auto& self) -> const auto& { return self.*member; });
  });
  for_each_figure([&](std::string_view name, Unit unit, auto member) {
    if (unit == Unit::by_dtype) return;
    bind_field<RooflineRow>(
        row, "self_" + std::string(name),
        unit, [member](const RooflineRow& self) -> const auto& { return self.self.*member; });
  });
  row.def_property_readonly("self_flops_by_dtype",
                            [](const RooflineRow& self) { return by_dtype(self.self.operations_by_dtype, true); });
  row.def("__repr__", [](const RooflineRow& self) {
    return "<Row '" + self.path + "' " + self.type + ": " + std::to_string(self.macs) + " MACs, " +
           std::to_string(self.flops) + " FLOPs, " + std::to_string(self.bytes) + " bytes>";
  });

  py::class_<GroupRow> group(module, "GroupRow");
  bind_figures<GroupRow>(group);
  for_each_group_field([&](std::string_view name, Unit unit, auto member) {
    bind_field<GroupRow>(
        group, std::string(name), unit, [member](const auto& self) -> const auto& { return self.*member; });
  });
  group.def_readonly("keys", &GroupRow::keys);
  group.def("__repr__", [](const GroupRow& self) {
    std::string keys;
    for (const auto& key : self.keys) keys += (keys.empty() ? "" : ", ") + key;
    return "<GroupRow " + keys + ": " + counted(self.calls, "call") + ">";
  });
}

void bind_kernels(py::module_& module) {
  py::class_<KernelRow> kernel(module, "KernelRow");
  for_each_kernel_field([&](std::string_view name, Unit unit, auto member) {
    bind_field<KernelRow>(
        kernel, std::string(name), unit, [member](const KernelRow& self) -> const auto& { return self.*member; });
  });
  kernel.def("__repr__", [](const KernelRow& self) {
    return "<KernelRow " + self.name + ": " + counted(static_cast<std::size_t>(self.instances), "instance") + ">";
  });
}

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
        return "<Coverage: " + counted(self.uncosted.size(), "uncosted op") + ", " +
               std::to_string(self.unobserved.size()) + " unobserved, " +
               counted(self.uncalled_modules.size(), "uncalled module") + ", " + counted(self.notes.size(), "note") +
               ">";
      });
}

}  // namespace

void bind_report(py::module_& module) {
  bind_rows(module);
  bind_kernels(module);
  bind_coverage(module);
  module.def("report_schema_version", [] { return kReportSchemaVersion; });
  module.def("report_from_dict", [](const py::dict& report) {
    return Report(std::make_shared<const ProfileData>(read_profile_data(report)));
  });
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
             std::string by, std::int64_t width, std::int64_t limit) {
            return self.table({depth, std::move(sort), std::move(columns), std::move(by), width, limit});
          },
          py::arg("depth"), py::arg("sort"), py::arg("columns"), py::arg("by"), py::arg("width"), py::arg("limit"))
      .def("to_json", &Report::to_json)
      .def("to_csv", &Report::to_csv, py::arg("by"))
      .def("write_json", &Report::write_json, py::arg("path"))
      .def("write_csv", &Report::write_csv, py::arg("path"), py::arg("by"));
}

}  // namespace roofprof::python
