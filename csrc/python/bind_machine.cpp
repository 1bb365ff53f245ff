// Binds the machine: its roofs, measured and kept, what else runs on it, and what measuring on its GPU needs.

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.h"
#include "device/doctor.h"
#include "device/nvidia/driver.h"
#include "machine/cpu/background_load.h"
#include "machine/cpu/host.h"
#include "machine/gpu/environment.h"
#include "machine/roofs.h"
#include "run/device_passes.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Raises KeyboardInterrupt after Ctrl-C, which only Python's own steps would notice.
void raise_interrupts() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// Measures without the GIL: measuring takes seconds, in which other threads of Python run. pybind11's callables take
// the GIL where they are called.
template <class Measure>
auto unlocked(const Measure& measure) {
  const py::gil_scoped_release others;
  return measure();
}

// Returns how many processors this process may use at once, by its affinity and the quota of its control groups.
double usable_processors() {
  const auto allowed = static_cast<double>(allowed_cpus().size());
  return std::min(allowed, cpu_quota().value_or(allowed));
}

void bind_host(py::module_& module) {
  py::class_<BackgroundLoad>(module, "BackgroundLoad")
      .def(py::init())
      .def(
          "note",
          [](const BackgroundLoad& self, const std::string& meanwhile) {
            return BackgroundLoad::note(self.share(), meanwhile);
          },
          py::arg("meanwhile"));
  module.def("usable_processors", &usable_processors);
  module.def("available_memory_bytes", [] { return available_memory_bytes(); });
  module.def(
      "environment_of", [](const std::string& device) { return facts_of(environment_of(device)); }, py::arg("device"));
}

void bind_doctor(py::module_& module) {
  module.def("doctor", [] {
    std::vector<std::tuple<std::string, std::string, std::string>> found;
    for (Examined& finding : doctor()) {
      found.emplace_back(std::move(finding.what), std::move(finding.found), std::move(finding.advice));
    }
    return found;
  });
}

}  // namespace

void bind_machine(py::module_& module) {
  module.def(
      "measure_ceilings",
      [](const std::string& device, const std::optional<Progress>& progress) {
        MeasuredCeilings measured = unlocked([&] { return measure_ceilings(device, progress.value_or(nullptr)); });
        return std::pair(std::move(measured.ceilings), std::move(measured.notes));
      },
      py::arg("device"), py::arg("progress") = py::none());
  module.def(
      "cached_ceilings",
      [](const std::string& device, const Progress& progress, bool again) {
        RoofSource source;
        source.while_waiting = &raise_interrupts;
        CachedCeilings cached = unlocked([&] { return cached_ceilings(device, progress, again, source); });
        return std::tuple(std::move(cached.roofs.ceilings), std::move(cached.roofs.notes), cached.is_new);
      },
      py::arg("device"), py::arg("progress"), py::arg("again"));
  module.def("ceilings_cache_folder", &ceilings_cache_folder);
  module.def("gpu_environment", &gpu_environment, py::arg("device"));
  module.def("cuda_core_fp32_peak", &cuda::cuda_core_fp32_peak, py::arg("sm_count"), py::arg("clock_hz"),
             py::arg("compute_major"), py::arg("compute_minor"));
  bind_host(module);
  bind_doctor(module);
}

}  // namespace roofprof::python
