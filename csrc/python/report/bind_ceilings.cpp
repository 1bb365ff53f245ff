// Ceilings: of files, given, published. csrc/python/bind_machine.cpp has what measures them.

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "core/collective_kinds.h"
#include "core/json/members.h"
#include "core/roofs.h"
#include "machine/known/file.h"
#include "machine/known/published.h"
#include "python/report/bindings.h"
#include "report/ceilings_table.h"
#include "roofprof/ceilings.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Converts through Python's json, so that both sides have the keys of a file.
py::object to_dict(const Ceilings& ceilings) {
  JsonWriter json;
  write_value(json, ceilings);
  return py::module_::import("json").attr("loads")(json.take());
}

Ceilings from_dict(const py::dict& from) {
  const auto text = py::module_::import("json").attr("dumps")(from).cast<std::string>();
  Ceilings ceilings;
  JsonReader json(text);
  read_value(json, ceilings);
  if (const auto wrong = impossible_roof(ceilings); !wrong.empty()) throw std::invalid_argument(wrong);
  return ceilings;
}

}  // namespace

void bind_ceilings(py::module_& module) {
  bind_struct<Provenance>(module, "Provenance");
  bind_struct<SustainedRate>(module, "SustainedRate");
  bind_struct<FastestWork>(module, "FastestWork");
  bind_struct<ComputeCeiling>(module, "ComputeCeiling");
  bind_struct<MemoryCeiling>(module, "MemoryCeiling");
  bind_struct<BandwidthPoint>(module, "BandwidthPoint");
  bind_struct<BandwidthCurve>(module, "BandwidthCurve");
  // Its latency keeps its name and its nanoseconds.
  py::class_<NetworkCeiling>(module, "NetworkCeiling")
      .def_readonly("collective", &NetworkCeiling::collective)
      .def_readonly("backend", &NetworkCeiling::backend)
      .def_readonly("ranks", &NetworkCeiling::ranks)
      .def_readonly("latency_ns", &NetworkCeiling::latency_ns)
      .def_readonly("bytes_per_second", &NetworkCeiling::bytes_per_second)
      .def_readonly("provenance", &NetworkCeiling::provenance);
  bind_struct<CardFacts>(module, "CardFacts");
  bind_struct<CalibratedNumber>(module, "CalibratedNumber");
  bind_struct<CalibratedClass>(module, "CalibratedClass");
  bind_struct<Calibration>(module, "Calibration");
  bind_struct<Ceilings>(module, "Ceilings")
      .def(py::init<>())
      .def(
          "bandwidth",
          [](const Ceilings& self, std::int64_t read, std::int64_t write, std::int64_t updated) {
            const auto roof = self.memory_roof({read, write, updated});
            return roof ? std::optional(roof->bytes_per_second) : std::nullopt;
          },
          py::arg("read_bytes"), py::arg("write_bytes") = 0, py::arg("updated_bytes") = 0)
      .def("to_dict", &to_dict)
      .def(
          "document",
          [](const Ceilings& self, const Ceilings* published) { return ceilings_document(self, published); },
          py::arg("published") = nullptr)
      .def(
          "table",
          [](const Ceilings& self, std::size_t width, const Ceilings* published) {
            return ceilings_table(self, width, published);
          },
          py::arg("width") = 120, py::arg("published") = nullptr)
      .def("__str__", [](const Ceilings& self) { return ceilings_table(self, 120); })
      .def(py::self == py::self)  // NOLINT(misc-redundant-expression)
      .def("__bool__", [](const Ceilings& self) { return !self.empty(); });
  module.def("ceilings_from_dict", &from_dict);
  module.def("given_ceilings", []() -> py::object {
    auto given = given_ceilings();
    if (!given) return py::none();
    return py::make_tuple(std::move(given->ceilings), std::move(given->notes));
  });
  module.def(
      "bus_factor",
      [](std::string_view collective, std::int64_t ranks) {
        const auto found = std::ranges::find(kCollectiveNames, collective);
        if (found == kCollectiveNames.end())
          throw std::invalid_argument("'" + std::string(collective) + "' is no collective");
        return bus_factor(static_cast<CollectiveKind>(found - kCollectiveNames.begin()), ranks);
      },
      py::arg("collective"), py::arg("ranks"));
  module.def(
      "is_floating", [](std::string_view dtype) { return is_floating(dtype_from_name(dtype)); }, py::arg("dtype"));
  module.def("published_ceilings", &Ceilings::published, py::arg("name"));
  module.def("published_for_driver_name", &published_for_driver_name, py::arg("driver_name"));
  module.def(
      "load_ceilings",
      [](const std::string& path) {
        MeasuredCeilings roofs = read_ceilings_file(path).roofs;
        return py::make_tuple(std::move(roofs.ceilings), std::move(roofs.notes));
      },
      py::arg("path"));
  module.def(
      "save_ceilings",
      [](const Ceilings& ceilings, const std::string& path, std::vector<std::string> notes) {
        write_ceilings_file({{}, {ceilings, std::move(notes)}}, path);
      },
      py::arg("ceilings"), py::arg("path"), py::arg("notes"));
}

}  // namespace roofprof::python
