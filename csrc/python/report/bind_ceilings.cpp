// Ceilings: of files, given, published. csrc/python/bind_roofs.cpp has what measures them.

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "core/json/members.h"
#include "core/possible_roofs.h"
#include "machine/known/file.h"
#include "machine/known/given.h"
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
  py::class_<Provenance>(module, "Provenance")
      .def_readonly("source", &Provenance::source)
      .def_readonly("method", &Provenance::method)
      .def_readonly("date", &Provenance::date)
      .def_readonly("spread", &Provenance::spread);
  py::class_<ComputeCeiling>(module, "ComputeCeiling")
      .def_property_readonly("dtype", [](const ComputeCeiling& self) { return std::string(name_of(self.dtype)); })
      .def_readonly("operations_per_second", &ComputeCeiling::operations_per_second)
      .def_readonly("provenance", &ComputeCeiling::provenance);
  py::class_<MemoryCeiling>(module, "MemoryCeiling")
      .def_readonly("level", &MemoryCeiling::level)
      .def_readonly("bytes_per_second", &MemoryCeiling::bytes_per_second)
      .def_readonly("capacity_bytes", &MemoryCeiling::capacity_bytes)
      .def_readonly("provenance", &MemoryCeiling::provenance);
  py::class_<BandwidthPoint>(module, "BandwidthPoint")
      .def_readonly("working_set_bytes", &BandwidthPoint::working_set_bytes)
      .def_readonly("read", &BandwidthPoint::read)
      .def_readonly("triad", &BandwidthPoint::triad)
      .def_readonly("copy", &BandwidthPoint::copy)
      .def_readonly("write", &BandwidthPoint::write)
      .def_readonly("update", &BandwidthPoint::update)
      .def_readonly("spread", &BandwidthPoint::spread);
  py::class_<BandwidthCurve>(module, "BandwidthCurve")
      .def_readonly("points", &BandwidthCurve::points)
      .def_readonly("provenance", &BandwidthCurve::provenance);
  py::class_<NetworkCeiling>(module, "NetworkCeiling")
      .def_readonly("collective", &NetworkCeiling::collective)
      .def_readonly("backend", &NetworkCeiling::backend)
      .def_readonly("ranks", &NetworkCeiling::ranks)
      .def_readonly("latency_ns", &NetworkCeiling::latency_ns)
      .def_readonly("bytes_per_second", &NetworkCeiling::bytes_per_second)
      .def_readonly("provenance", &NetworkCeiling::provenance);
  py::class_<CardFacts>(module, "CardFacts")
      .def_readonly("compute_capability", &CardFacts::compute_capability)
      .def_readonly("multiprocessors", &CardFacts::multiprocessors)
      .def_readonly("l2_bytes", &CardFacts::l2_bytes)
      .def_readonly("memory_bytes", &CardFacts::memory_bytes)
      .def_readonly("tdp_watts", &CardFacts::tdp_watts);
  py::class_<Ceilings>(module, "Ceilings")
      .def(py::init<>())
      .def_readonly("device", &Ceilings::device)
      .def_readonly("compute", &Ceilings::compute)
      .def_readonly("memory", &Ceilings::memory)
      .def_readonly("curve", &Ceilings::curve)
      .def_readonly("network", &Ceilings::network)
      .def_readonly("facts", &Ceilings::facts)
      .def_readonly("busy_share", &Ceilings::busy_share)
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
