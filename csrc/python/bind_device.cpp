// What runs do on a device, for Python's profiler.

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <array>
#include <stdexcept>

#include "bindings.h"
#include "module_hooks.h"
#include "profiler/device_runs.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

constexpr std::array<std::string_view, 4> kCountersNames = {"auto", "off", "modules", "flops"};

Counters read_counters(const std::string& name) {
  for (std::size_t i = 0; i < kCountersNames.size(); ++i) {
    if (name == kCountersNames[i]) return static_cast<Counters>(i);
  }
  throw std::invalid_argument("counters must be 'auto', 'off', 'modules' or 'flops', not '" + name + "'");
}

}  // namespace

void bind_device(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;  // what waits for a device lets other threads run
  py::class_<DeviceRuns>(module, "DeviceRuns")
      .def(py::init([](const std::string& device, const std::string& counters) {
             return std::make_unique<DeviceRuns>(device, read_counters(counters));
           }),
           py::arg("device"), py::arg("counters"))
      .def(
          "start", [](DeviceRuns& runs, const ModuleHooks& hooks) { runs.start(*hooks.session(), kOutside); },
          py::arg("session"), Unlocked())
      .def(
          "stop",
          [](DeviceRuns& runs, const ModuleHooks& hooks, bool raised) { return runs.stop(*hooks.session(), raised); },
          py::arg("session"), py::arg("raised") = false, Unlocked())
      .def("synchronize", &DeviceRuns::synchronize, Unlocked())
      .def_property_readonly("lost", &DeviceRuns::lost)
      .def(
          "count",
          [](DeviceRuns& runs, const ModuleHooks& hooks, const std::vector<observe::Pass>& timed,
             const std::function<void()>& call) { runs.count(*hooks.session(), kOutside, timed, call); },
          py::arg("session"), py::arg("timed"), py::arg("call"), Unlocked());
  module.def("check_counters", [](const std::string& name) { read_counters(name); });
  module.def("untimed_on", &untimed_on);
}

}  // namespace roofprof::python
