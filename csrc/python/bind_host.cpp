// The machine around this process, for what is timed without a run.

#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <variant>

#include "bindings.h"
#include "machine/cpu/background_load.h"
#include "machine/cpu/host.h"
#include "run/device_passes.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Processors that this process may use at once, by its affinity and by the quota of its control groups.
double usable_processors() {
  const auto allowed = static_cast<double>(allowed_cpus().size());
  return std::min(allowed, cpu_quota().value_or(allowed));
}

}  // namespace

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
      "environment_of",
      [](const std::string& device) {
        py::dict result;
        for (const auto& [key, value] : environment_of(device)) result[py::str(key)] = py::cast(value);
        return result;
      },
      py::arg("device"));
}

}  // namespace roofprof::python
