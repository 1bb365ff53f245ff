// Binds runs, blocks and counts of Python's profiler (the loop of csrc/run and the reports that it ends in), and what
// puts torch's state back after further calls of a model.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "module_hooks.h"
#include "python_target.h"
#include "read_data.h"
#include "run/observed_run.h"
#include "run/state_snapshot.h"
#include "tensor_walk.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

constexpr std::array<std::string_view, 4> kCountersNames = {"auto", "off", "modules", "flops"};

Counters counters_named(const std::string& name) {
  for (std::size_t i = 0; i < kCountersNames.size(); ++i) {
    if (name == kCountersNames[i]) return static_cast<Counters>(i);
  }
  throw std::invalid_argument("counters must be 'auto', 'off', 'modules' or 'flops', not '" + name + "'");
}

struct PythonRun {
  PythonRun(std::shared_ptr<ModuleHooks> hooks_of_it, run::RunSetting setting, std::optional<run::Location> otherwise)
      : hooks(std::move(hooks_of_it)), run(hooks->session(), std::move(setting), std::move(otherwise)) {}

  std::shared_ptr<ModuleHooks> hooks;
  run::ObservedRun run;
};

using DeviceAndWhy = std::pair<std::string, std::string>;

Mode mode_named(std::string_view name) {
  const auto* found = std::ranges::find(kModeNames, name);
  if (found == kModeNames.end()) throw std::invalid_argument("there is no mode '" + std::string(name) + "'");
  return static_cast<Mode>(found - kModeNames.begin());
}

std::unique_ptr<PythonRun> make_run(std::shared_ptr<ModuleHooks> hooks, const std::string& mode, std::string device,
                                    std::string untimed, const std::string& counters, bool keep_events, bool holds_data,
                                    std::optional<DeviceAndWhy> otherwise, bool all_threads) {
  run::RunSetting setting{.mode = mode_named(mode),
                          .device = std::move(device),
                          .untimed = std::move(untimed),
                          .counters = counters_named(counters),
                          .all_threads = all_threads,
                          .keep_events = keep_events,
                          .holds_data = holds_data,
                          .base = kOutside};
  std::optional<run::Location> location;
  if (otherwise) location = run::Location{std::move(otherwise->first), std::move(otherwise->second)};
  return std::make_unique<PythonRun>(std::move(hooks), std::move(setting), std::move(location));
}

// The text is the report that holds the counts; empty: they are not known, and the last item may say why.
PackageCalls package_calls(const std::tuple<ModuleId, std::string, std::int64_t, std::string>& package) {
  const auto& [place, text, calls, why_not] = package;
  PackageCalls result{place, nullptr, calls, why_not};
  if (text.empty()) return result;
  const auto report = std::make_shared<const Report>(Report::from_json_text(text));
  result.counts = {report, &data_of(*report)};
  return result;
}

// The work that ops did, which Python adds up for kernels of compiled code.
struct OpsWork {
  Work work;  // a lower limit where an op has no cost
  bool costed = true;
};

// Returns the work of what the call dispatches on this thread, in no profile.
OpsWork work_of(const py::typing::Callable<py::object()>& call) {
  const auto session = std::make_shared<observe::Session>();
  session->start(kOutside);
  try {
    call();
  } catch (...) {
    session->stop();
    throw;
  }
  OpsWork sum;
  for (const auto& op : session->stop().ops) {
    if (op.is_unobserved()) continue;
    sum.work += op.work;
    sum.work.lower_limit = sum.work.lower_limit || !op.costed;
  }
  return sum;
}

CompiledGraph read_graph(const py::dict& from) {
  CompiledGraph graph;
  for (const auto item : from["kernels"]) {
    const auto facts = py::cast<py::dict>(item);
    auto& [kernel, range] = graph.kernels.emplace_back();
    range = facts["range"].cast<std::string>();
    kernel.name = facts["name"].cast<std::string>();
    kernel.ops = facts["ops"].cast<std::vector<std::string>>();
    for (const auto& [module, share] : facts["parts"].cast<std::vector<std::pair<ModuleId, double>>>()) {
      kernel.parts.push_back({module, share});
    }
    kernel.code = facts["code"].cast<std::string>();
    kernel.source = facts["source"].cast<std::string>();
    const auto ops = facts["work"].cast<OpsWork>();
    kernel.costed = ops.costed;
    kernel.work = ops.work;
    kernel.unfused_bytes = ops.work.bytes();
    if (!facts["moved"].is_none()) {
      std::tie(kernel.work.read_bytes, kernel.work.write_bytes) =
          facts["moved"].cast<std::pair<std::int64_t, std::int64_t>>();
      kernel.work.updated_bytes = 0;
    }
  }
  return graph;
}

// `facts` are those that the profiler knows itself.
Report make_report(PythonRun& self, const AnyDict& facts) {
  RunRecord observed;
  observed.tree.modules = self.hooks->modules();
  observed.run.model = facts["model"].cast<std::string>();
  add_notes(observed.notes, facts["notes"].cast<std::vector<Note>>());
  for (const auto calls : facts["token_calls"])
    observed.run.token_calls.push_back(read_token_calls(calls.cast<py::dict>()));
  for (const auto package : facts["packages"]) {
    observed.packages.push_back(
        package_calls(package.cast<std::tuple<ModuleId, std::string, std::int64_t, std::string>>()));
  }
  for (const auto graph : facts["graphs"]) observed.graphs.push_back(read_graph(py::cast<py::dict>(graph)));
  const MeasuredCeilings roofs{facts["ceilings"].cast<Ceilings>(),
                               facts["notes_on_roofs"].cast<std::vector<std::string>>()};
  return run::finish_report(self.run, std::move(observed), roofs);
}

run::RunLimits make_limits(std::optional<std::int64_t> warmup, std::optional<std::int64_t> repeat,
                           std::optional<double> seconds) {
  run::RunLimits limits{warmup, repeat};
  if (seconds) limits.time = std::chrono::nanoseconds(std::llround(*seconds * 1e9));
  return limits;
}

at::Tensor tensor_in(py::handle object) {
  if (!is_tensor(object.ptr())) throw py::type_error("not a torch.Tensor");
  return THPVariable_Unpack(object.ptr());
}

// Reads the device that a tensor was made with: a subclass may compute another answer.
struct Plain : c10::TensorImpl {
  static c10::Device device_of(const c10::TensorImpl& tensor) { return (tensor.*(&Plain::device_default))(); }
};

using Tensors = py::typing::List<at::Tensor>;

std::vector<at::Tensor> tensors_in(const Tensors& objects) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(objects.size());
  for (const auto object : objects) tensors.push_back(tensor_in(object));
  return tensors;
}

void bind_state(py::module_& module) {
  module.attr("BYTES_KEPT") = run::kBytesKept;
  py::class_<run::AmbientState>(
      module, "AmbientState",
      "Keeps the grad mode, autocast's cache, and the random numbers of the CPU and of CUDA devices.")
      .def(py::init<>())
      .def("restore", &run::AmbientState::restore);
  py::class_<run::KeptTensors>(module, "KeptTensors",
                               "Keeps tensors by value; restore() returns how many could not be put back.")
      .def(py::init([](const Tensors& tensors) {
             std::vector<run::ToKeep> to_keep;
             for (auto& tensor : tensors_in(tensors)) to_keep.push_back({std::move(tensor), /*by_value=*/true});
             return run::KeptTensors(to_keep);
           }),
           py::arg("tensors"))
      .def("restore", &run::KeptTensors::restore);
  py::class_<run::TensorSnapshot>(module, "TensorSnapshot")
      .def(py::init([](const Tensors& tensors, const Tensors& inputs, std::int64_t bytes_kept) {
             return run::TensorSnapshot(tensors_in(tensors), tensors_in(inputs), bytes_kept);
           }),
           py::arg("tensors"), py::arg("inputs"), py::arg("bytes_kept"))
      .def("why_only_once", &run::TensorSnapshot::why_only_once)
      .def(
          "keep", [](run::TensorSnapshot& self, const Tensors& tensors) { self.keep(tensors_in(tensors)); },
          py::arg("tensors"))
      .def("restore", &run::TensorSnapshot::restore);
  module.def(
      "gradient_of",
      [](py::handle tensor) -> std::optional<at::Tensor> {
        auto gradient = run::gradient_of(tensor_in(tensor));
        return gradient && gradient->defined() ? std::move(gradient) : std::nullopt;
      },
      py::arg("tensor"));
  module.def(
      "device_of",
      [](py::handle tensor) -> std::string {
        try {
          return Plain::device_of(*tensor_in(tensor).unsafeGetTensorImpl()).str();
        } catch (const c10::Error&) {  // it was made with none
          return "";
        }
      },
      py::arg("tensor"));
  module.def(
      "holds_its_elements", [](py::handle tensor) { return run::holds_its_elements(tensor_in(tensor)); },
      py::arg("tensor"));
}

using Clock = py::typing::Callable<py::float_()>;

// Returns how many bare calls were for warm-up, and the note on what other programs did meanwhile. `timer` makes and
// times them; `now` is Python's clock in seconds, which the time limit goes by.
std::pair<std::int64_t, std::optional<Note>> time_calls(PythonRun& self, const py::object& target,
                                                        const py::object& timer, const Clock& now, std::int64_t warmup,
                                                        std::int64_t repeat, std::optional<double> seconds) {
  using Time = std::chrono::steady_clock::time_point;
  const auto duration = [](double of_seconds) {
    return std::chrono::round<Time::duration>(std::chrono::duration<double>(of_seconds));
  };
  constexpr double kNoLimit = 9e9;  // what a duration of nanoseconds can hold
  run::RunLimits limits{warmup, repeat};
  limits.time = seconds.value_or(kNoLimit) < kNoLimit ? duration(*seconds) : Time::duration::max();
  limits.warmup_share = static_cast<double>(warmup) / static_cast<double>(warmup + repeat);
  limits.now = [&] { return Time(duration(now().cast<double>())); };
  TimedTarget calls(self.run, target, timer);
  run::RunResult result;
  run::time_calls(calls, limits, result);
  return {result.warmup, BackgroundLoad::note(result.others_share, "the calls were timed")};
}

}  // namespace

void bind_run(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;  // what waits for a device lets other threads run
  module.attr("WARM_UP_CALLS") = run::kWarmUpCalls;
  py::class_<run::RunLimits>(module, "RunLimits")
      .def(py::init(&make_limits), py::arg("warmup"), py::arg("repeat"), py::arg("seconds") = py::none());
  py::class_<OpsWork>(
      module, "OpsWork",
      "The work of some operators: a lower_limit where one has no cost; not costed where nothing is known.")
      .def(py::init<>())
      .def_readwrite("costed", &OpsWork::costed)
      .def_property(
          "lower_limit", [](const OpsWork& self) { return self.work.lower_limit; },
          [](OpsWork& self, bool is) { self.work.lower_limit = is; })
      .def_property_readonly("macs", [](const OpsWork& self) { return self.work.macs; })
      .def_property_readonly("bytes", [](const OpsWork& self) { return self.work.bytes(); })
      .def_property_readonly("operations",
                             [](const OpsWork& self) { return saturating_add(self.work.flops(), self.work.int_ops()); })
      .def(
          "add",
          [](OpsWork& self, const OpsWork& other) {
            self.work += other.work;
            self.costed = self.costed && other.costed;
          },
          py::arg("other"));
  module.def("work_of", &work_of, py::arg("call"));
  py::class_<PythonRun>(module, "Run",
                        "One run, block or count: the run loop, what it observed so far, and the report of it.")
      .def(py::init(&make_run), py::arg("session"), py::arg("mode"), py::arg("device"), py::arg("untimed"),
           py::arg("counters"), py::arg("keep_events") = false, py::arg("holds_data") = true,
           py::arg("otherwise") = py::none(), py::arg("all_threads") = false)
      .def(
          "start_block", [](PythonRun& self) { self.run.start_block(); }, Unlocked())
      .def(
          "stop_block", [](PythonRun& self, bool raised) { self.run.stop_block(raised); }, py::arg("raised"),
          Unlocked())
      .def("step", [](PythonRun& self) { self.run.step(); })
      .def("leave_steps", [](PythonRun& self) { self.run.leave_steps(); })
      .def("enter_steps", [](PythonRun& self) { self.run.enter_steps(); })
      .def(
          "count",
          [](PythonRun& self, const py::object& target) {
            PythonTarget calls(self.run, target);
            self.run.count(calls);
          },
          py::arg("target"))
      .def(
          "repeat",
          [](PythonRun& self, const py::object& target, const run::RunLimits& limits) {
            PythonTarget calls(self.run, target);
            self.run.repeat(calls, limits);
          },
          py::arg("target"), py::arg("limits"))
      .def("time", &time_calls, py::arg("target"), py::arg("timer"), py::arg("now"), py::arg("warmup"),
           py::arg("repeat"), py::arg("seconds"),
           "Return the number of calls for warm-up and a note; timer makes a call, returns its wall time in ns, and is "
           "told to keep the latest one as timed.")
      .def_property_readonly("counted", [](const PythonRun& self) { return self.run.result().counting.has_value(); })
      .def_property_readonly("timed", [](const PythonRun& self) { return !self.run.result().timed.empty(); })
      .def_property_readonly("device", [](const PythonRun& self) { return self.run.setting().device; })
      .def_property_readonly("untimed", [](const PythonRun& self) { return self.run.setting().untimed; })
      .def("report", &make_report, py::arg("facts"));
  module.def("check_counters", [](const std::string& name) { counters_named(name); }, py::arg("counters"));
  module.def("untimed_on", &untimed_on, py::arg("device"));
  bind_state(module);
}

}  // namespace roofprof::python
