// Observation: Session with its hooks, passes, and the report made from them.

#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <torch/csrc/jit/api/module.h>

#include "bindings.h"
#include "device/cpu/environment.h"
#include "module_hooks.h"
#include "observe/assemble.h"
#include "observe/compiled_regions.h"
#include "observe/op_observer.h"
#include "observe/session.h"
#include "profiler/device_runs.h"
#include "read_data.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// `info` holds the fields of ProfileData that the profiler knows itself.
Report make_report(const ModuleHooks& hooks, const observe::Pass& counting, const std::vector<observe::Pass>& timed,
                   const DeviceRuns& device, const py::dict& info) {
  auto data = std::make_shared<ProfileData>();
  data->modules = hooks.modules();
  data->model = info["model"].cast<std::string>();
  data->device = info["device"].cast<std::string>();
  data->scope = info["scope"].cast<std::string>();
  data->partial = info["partial"].cast<bool>();
  data->notes = info["notes"].cast<std::vector<std::string>>();
  data->runs.bare_ns = info["bare_ns"].cast<std::vector<std::int64_t>>();
  data->runs.warmup = info["warmup"].cast<std::int64_t>();
  data->runs.steps = info["steps"].cast<std::int64_t>();
  data->ceilings = info["ceilings"].cast<Ceilings>();
  data->environment = info["environment"].cast<Environment>();
  hooks.session()->regions().add_to(*data);
  const auto places = observe::assemble(counting, timed, *data);
  device.add_to(*hooks.session(), timed, places, *data);
  return Report(std::move(data));
}

}  // namespace

void bind_session(py::module_& module) {
  py::class_<observe::Pass>(module, "Pass")
      .def_readonly("wall_ns", &observe::Pass::wall_ns)
      .def_property_readonly("compiled_regions",
                             [](const observe::Pass& pass) { return observe::compiled_regions_in(pass).size(); });

  py::class_<ModuleHooks, std::shared_ptr<ModuleHooks>>(module, "Session")
      .def(py::init([](const py::list& modules, const py::list& objects) {
             return std::make_shared<ModuleHooks>(read_modules(modules), objects);
           }),
           py::arg("modules"), py::arg("objects"))
      .def_property_readonly("enter_hook", [](const py::object& self) { return ModuleHooks::enter_hook(self); })
      .def_property_readonly("leave_hook", [](const py::object& self) { return ModuleHooks::leave_hook(self); })
      .def(
          "update",
          [](ModuleHooks& hooks, ModuleId place, const py::dict& facts) { hooks.update(place, read_module(facts)); },
          py::arg("place"), py::arg("facts"))
      .def_readwrite("record_shapes", &ModuleHooks::record_shapes)
      .def_property_readonly("active", [](const ModuleHooks& hooks) { return hooks.session()->active(); })
      .def("enter_model", [](ModuleHooks& hooks) { return hooks.session()->enter(kModel, &hooks); })
      .def(
          "add_wrapper",
          [](ModuleHooks& hooks, const py::object& wrapper, const py::object& wrapped, ModuleId place) {
            hooks.add_wrapper(wrapper, wrapped, place);
          },
          py::arg("wrapper"), py::arg("module"), py::arg("place"))
      .def(
          "add_script",
          [](ModuleHooks& hooks, ModuleId place, const torch::jit::Module& module) { hooks.add_script(place, module); },
          py::arg("place"), py::arg("module"))
      .def("hide_script_calls", &ModuleHooks::hide_script_calls)
      .def("enter_compiled", [](const ModuleHooks&) { observe::enter_compiled(); })
      .def("leave_compiled", [](const ModuleHooks&) { observe::leave_compiled(); })
      .def("pause", [](ModuleHooks& hooks) { hooks.session()->pause(); })
      .def("resume", [](ModuleHooks& hooks) { hooks.session()->resume(); })
      .def("enter_optimizer",
           [](ModuleHooks& hooks, const py::object& optimizer) {
             return hooks.session()->enter_optimizer(optimizer.ptr());
           })
      .def("leave_optimizer",
           [](ModuleHooks& hooks, const py::object& optimizer) { hooks.session()->leave(optimizer.ptr()); })
      .def("enter_closure",
           [](ModuleHooks& hooks, const py::object& closure) { return hooks.session()->enter_closure(closure.ptr()); })
      .def("leave_closure",
           [](ModuleHooks& hooks, const py::object& closure) { hooks.session()->leave(closure.ptr()); });

  module.def("same_work", &observe::same_work);
  module.def("make_report", &make_report, py::arg("session"), py::arg("counting"), py::arg("timed"), py::arg("device"),
             py::arg("info"));
  module.def("cpu_environment", &cpu_environment);
  module.def("environment_of", &environment_of, py::arg("device"));
}

}  // namespace roofprof::python
