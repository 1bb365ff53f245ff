// The measurement of roofs, and where they are kept.

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "device/nvidia/driver.h"
#include "machine/gpu/environment.h"
#include "machine/roofs.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Ctrl-C, which only Python's own steps would see.
void raise_interrupts() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// Measuring takes seconds, in which other threads of Python run; pybind11's callables take the lock where they are
// called.
template <class Measure>
auto unlocked(const Measure& measure) {
  const py::gil_scoped_release others;
  return measure();
}

}  // namespace

void bind_roofs(py::module_& module) {
  module.def(
      "measure_ceilings",
      [](const std::string& device, const Progress& progress) {
        MeasuredCeilings measured = unlocked([&] { return measure_ceilings(device, progress); });
        return py::make_tuple(std::move(measured.ceilings), std::move(measured.notes));
      },
      py::arg("device"), py::arg("progress") = nullptr);
  module.def(
      "cached_ceilings",
      [](const std::string& device, const Progress& progress, bool again) {
        RoofSource source;
        source.while_waiting = &raise_interrupts;
        CachedCeilings cached = unlocked([&] { return cached_ceilings(device, progress, again, source); });
        return py::make_tuple(std::move(cached.roofs.ceilings), std::move(cached.roofs.notes), cached.is_new);
      },
      py::arg("device"), py::arg("progress"), py::arg("again"));
  module.def("ceilings_cache_folder", &ceilings_cache_folder);
  module.def("gpu_environment", &gpu_environment, py::arg("device"));
  module.def("cuda_core_fp32_peak", &cuda::cuda_core_fp32_peak, py::arg("sm_count"), py::arg("clock_hz"),
             py::arg("compute_major"), py::arg("compute_minor"));
}

}  // namespace roofprof::python
