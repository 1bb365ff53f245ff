// The events of a report's run as lists by column, for roofprof/render/traces.

#include <pybind11/stl.h>

#include <functional>

#include "core/members.h"
#include "python/report/bindings.h"
#include "roofprof/report.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

template <class Value>
py::object plain_value(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return py::str(std::string(names_of_enum<Value>.at(static_cast<std::size_t>(value))));
  } else {
    return py::cast(value);
  }
}

template <class Row>
py::dict event_columns_of(const std::vector<Row>& rows) {
  py::dict columns;
  for_each_member(Of<Row>{}, [&](std::string_view name, auto member, Written) {
    py::list column(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) column[i] = plain_value(std::invoke(member, rows[i]));
    columns[py::str(name.data(), name.size())] = column;
  });
  return columns;
}

py::object events_of(const Report& report) {
  const auto& data = report.data();
  if (!data.events.kept) return py::none();
  py::list modules;
  for (const auto& module : data.modules) modules.append(py::make_tuple(module.path, module.type, module.parent));
  py::list regions;
  for (const auto& region : data.regions) regions.append(region.name);
  py::list ops;
  for (const auto& op : data.ops) {
    ops.append(py::make_tuple(op.shapes, std::string(kDTypeNames.at(static_cast<std::size_t>(op.dtype)))));
  }
  py::dict events;
  events["names"] = data.events.names;
  events["host"] = event_columns_of(data.events.host);
  events["device"] = event_columns_of(data.events.device);
  events["left_out"] = data.events.left_out;
  events["modules"] = modules;
  events["regions"] = regions;
  events["ops"] = ops;
  return events;
}

}  // namespace

void bind_events(py::module_& module) {
  // None where the report keeps none.
  module.def("events_of", &events_of, py::arg("report"));
}

}  // namespace roofprof::python
