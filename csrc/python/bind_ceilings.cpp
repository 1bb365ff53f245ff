// Ceilings and their measurement.

#include <pybind11/functional.h>
#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "device/cuda/core_peak.h"
#include "device/gpu/environment.h"
#include "device/measure.h"
#include "read_data.h"
#include "report/ceilings_table.h"
#include "roofprof/ceilings.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

py::dict to_dict(const Provenance& provenance) {
  using namespace pybind11::literals;
  return py::dict("source"_a = provenance.source, "method"_a = provenance.method, "date"_a = provenance.date,
                  "spread"_a = provenance.spread);
}

py::dict to_dict(const Ceilings& ceilings) {
  using namespace pybind11::literals;
  py::list compute;
  for (const auto& ceiling : ceilings.compute) {
    compute.append(py::dict("dtype"_a = std::string(name_of(ceiling.dtype)),
                            "operations_per_second"_a = ceiling.operations_per_second,
                            "provenance"_a = to_dict(ceiling.provenance)));
  }
  py::list memory;
  for (const auto& ceiling : ceilings.memory) {
    memory.append(py::dict("level"_a = ceiling.level, "bytes_per_second"_a = ceiling.bytes_per_second,
                           "capacity_bytes"_a = ceiling.capacity_bytes, "provenance"_a = to_dict(ceiling.provenance)));
  }
  return py::dict("device"_a = ceilings.device, "compute"_a = compute, "memory"_a = memory);
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
  py::class_<Ceilings>(module, "Ceilings")
      .def(py::init<>())
      .def_readonly("device", &Ceilings::device)
      .def_readonly("compute", &Ceilings::compute)
      .def_readonly("memory", &Ceilings::memory)
      .def("to_dict", [](const Ceilings& self) { return to_dict(self); })
      .def(
          "table",
          [](const Ceilings& self, std::size_t width, const Ceilings* published) {
            return ceilings_table(self, width, published);
          },
          py::arg("width") = 120, py::arg("published") = nullptr)
      .def("__str__", [](const Ceilings& self) { return ceilings_table(self, 120); })
      .def(py::self == py::self)
      .def("__bool__", [](const Ceilings& self) { return !self.empty(); });
  module.def("ceilings_from_dict", &read_ceilings);
  module.def(
      "measure_ceilings",
      [](const std::string& device, const std::function<void(std::string_view)>& progress) {
        auto measured = measure_ceilings(device, progress);
        return py::make_tuple(std::move(measured.ceilings), std::move(measured.notes));
      },
      py::arg("device"), py::arg("progress") = nullptr);
  module.def("gpu_environment", &gpu_environment, py::arg("device"));
  module.def("cuda_core_fp32_peak", &cuda::cuda_core_fp32_peak, py::arg("sm_count"), py::arg("clock_hz"),
             py::arg("compute_major"), py::arg("compute_minor"));
}

}  // namespace roofprof::python
