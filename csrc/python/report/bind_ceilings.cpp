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

using CeilingsAndNotes = std::pair<Ceilings, std::vector<std::string>>;

// Converts through Python's json, so that both sides have the keys of a file.
AnyDict to_dict(const Ceilings& ceilings) {
  JsonWriter json;
  write_value(json, ceilings);
  return py::module_::import("json").attr("loads")(json.take());
}

Ceilings from_dict(const AnyDict& from) {
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
  bind_struct<NetworkCeiling, /*times_in_seconds=*/false>(
      module, "NetworkCeiling",
      {"A collective takes at least latency_ns + (bytes that each rank sends) / bytes_per_second."});
  bind_struct<CardFacts>(module, "CardFacts",
                         {"Zero and \"\" mean: not known.",
                          {{"inline_ecc", "Whether its memory holds error correction among the data."}}});
  bind_struct<CalibratedNumber>(module, "CalibratedNumber", {"A number of the prediction that holds for the device."});
  bind_struct<CalibratedClass>(
      module, "CalibratedClass",
      {"How well the numbers predict kernels of a class that were held out of the fit; errors are 0.1 for 10%."});
  bind_struct<Calibration>(
      module, "Calibration",
      {"What measured kernels of the device say about its predictions; no source: it was not calibrated."});
  bind_struct<Ceilings>(
      module, "Ceilings",
      {"",
       {{"curve", "Bandwidth against working set, where it was measured; else without points."},
        {"calibration", "By ``roofprof calibrate``."},
        {"facts", "Facts that are published of a card, in addition to its roofs."},
        {"busy_share",
         "The share of the processors that others used during the measurement, if it was too large; else 0."}}})
      .def(py::init<>())
      .def(
          "bandwidth",
          [](const Ceilings& self, std::int64_t read, std::int64_t write, std::int64_t updated) {
            const auto roof = self.memory_roof({read, write, updated});
            return roof ? std::optional(roof->bytes_per_second) : std::nullopt;
          },
          py::arg("read_bytes"), py::arg("write_bytes") = 0, py::arg("updated_bytes") = 0,
          "Return the roof in B/s of an op that moves these bytes; updated_bytes of both are in the same place.")
      .def("to_dict", &to_dict)
      .def(
          "document",
          [](const Ceilings& self, const std::optional<Ceilings>& published) {
            return ceilings_document(self, published ? &*published : nullptr);
          },
          py::arg("published") = py::none())
      .def(
          "table",
          [](const Ceilings& self, std::size_t width, const std::optional<Ceilings>& published) {
            return ceilings_table(self, width, published ? &*published : nullptr);
          },
          py::arg("width") = 120, py::arg("published") = py::none())
      .def("__str__", [](const Ceilings& self) { return ceilings_table(self, 120); })
      .def(py::self == py::self)  // NOLINT(misc-redundant-expression)
      .def("__bool__", [](const Ceilings& self) { return !self.empty(); });
  module.def("ceilings_from_dict", &from_dict, py::arg("ceilings"));
  module.def("given_ceilings", []() -> std::optional<CeilingsAndNotes> {
    auto given = given_ceilings();
    if (!given) return std::nullopt;
    return CeilingsAndNotes(std::move(given->ceilings), std::move(given->notes));
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
      [](const TextOrBytes& path) {
        MeasuredCeilings roofs = read_ceilings_file(path.cast<std::string>()).roofs;
        return CeilingsAndNotes(std::move(roofs.ceilings), std::move(roofs.notes));
      },
      py::arg("path"));
  module.def(
      "save_ceilings",
      [](const Ceilings& ceilings, const TextOrBytes& path, std::vector<std::string> notes) {
        write_ceilings_file({{}, {ceilings, std::move(notes)}}, path.cast<std::string>());
      },
      py::arg("ceilings"), py::arg("path"), py::arg("notes"));
}

}  // namespace roofprof::python
