// Binds the reader of torch.profiler's traces, which takes them piece by piece.

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings.h"
#include "core/device_data.h"
#include "core/profile.h"
#include "core/utf8.h"
#include "kineto/importer/import_trace.h"

namespace py = pybind11;

namespace roofprof::python {

namespace {

// The path of a module, and the index of the call around it.
using Call = std::pair<std::string, std::int32_t>;

// Maps a module's path to the sizes of its direct parameters, and to true if a call reads all of them.
using Parameters = std::map<std::string, std::pair<std::vector<Shape>, bool>>;

// Returns the sizes that a call takes, without those of the inputs that are not parameters; these come first.
std::vector<std::optional<Shape>> parameters_in(const std::vector<Shape>& sizes, std::vector<Shape> parameters) {
  std::vector<std::optional<Shape>> taken(sizes.begin(), sizes.end());
  for (auto size = taken.rbegin(); size != taken.rend(); ++size) {
    const auto known = std::ranges::find(parameters, **size);
    if (known == parameters.end()) {
      size->reset();
    } else {
      parameters.erase(known);
    }
  }
  return taken;
}

std::unordered_map<ModuleId, kineto::ModuleReads> reads_of(const Profile& counted, const Parameters& parameters) {
  std::unordered_map<ModuleId, std::set<std::pair<std::string, OpShapes>>> ops;
  const auto first_place = [&](ModuleId id) {
    const auto first = counted.tree.modules[index_of(id)].same_as;
    return first < 0 ? id : first;
  };
  for (const auto& op : counted.counts.ops) {
    if (index_of(op.owner.module) >= counted.tree.modules.size() || op.shapes.empty()) continue;
    ops[first_place(op.owner.module)].emplace(op.op, op.shapes);
  }
  std::unordered_map<ModuleId, kineto::ModuleReads> reads;
  for (const auto& [id, calls] : ops) {
    const auto own = parameters.find(counted.tree.modules[index_of(id)].path);
    if (own == parameters.end()) continue;
    const auto& [sizes, all_read] = own->second;
    std::set<Shape> taken;
    for (const auto& [op, shapes] : calls) {
      taken.insert(shapes.tensors.begin(), shapes.tensors.end());
    }
    auto& known = reads[id];
    for (const auto& size : sizes) {
      if (all_read || taken.contains(size)) known.parameters.push_back(size);
    }
    const auto& [op, shapes] = *calls.begin();
    if (!all_read || calls.size() > 1 || shapes.others) continue;
    known.op = op;
    known.of_call = shapes.tensors;
    known.taken = parameters_in(known.of_call, sizes);
  }
  return reads;
}

// The name of a capture's file, its trace, its batch size (0: not known), and true if the user gave it.
using ReadCapture = std::tuple<std::string, kineto::TraceReader*, std::int64_t, bool>;

std::vector<kineto::Capture> captures_of(const std::vector<ReadCapture>& read) {
  std::vector<kineto::Capture> captures;
  for (const auto& [name, reader, batch, given] : read) {
    try {
      captures.push_back({name, reader->finish(), batch, given});
    } catch (const kineto::TraceError& error) {
      throw kineto::TraceError("its capture '" + name + "': " + error.what());
    }
  }
  return captures;
}

// Returns the model and its calls. Modules without a row in the count are left out, and their calls become their
// caller's.
kineto::CalledModel called_model(const Report& counted, const std::vector<Call>& calls, const Parameters& parameters) {
  kineto::CalledModel model;
  model.modules = data_of(counted).tree.modules;
  model.reads = reads_of(data_of(counted), parameters);
  std::map<std::string, ModuleId> ids;
  for (std::size_t id = 0; id < model.modules.size(); ++id) {
    if (model.modules[id].type != kRegionType) ids.emplace(model.modules[id].path, static_cast<ModuleId>(id));
  }
  std::vector<std::int32_t> kept;  // by call: its index in model.calls, or that of the call around it
  for (const auto& [path, around] : calls) {
    const auto caller = around < 0 ? -1 : kept.at(static_cast<std::size_t>(around));
    const auto known = ids.find(path);
    if (known != ids.end()) model.calls.push_back({known->second, caller, {}});
    kept.push_back(known == ids.end() ? caller : static_cast<std::int32_t>(model.calls.size()) - 1);
  }
  return model;
}

// A kernel as Python gets it: name, grid, block, ranges and time.
using LaunchSizes = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
using TracedFacts = std::tuple<std::string, LaunchSizes, LaunchSizes, std::vector<std::string>, std::int64_t>;
// Counters as Python gives them: values by name, for each kernel, not a number where not known; sources (name, metrics,
// formula, why it is missing); notes (code, text); and the compute capability.
using CounterFacts =
    std::tuple<std::map<std::string, std::vector<double>>,
               std::vector<std::tuple<std::string, std::vector<std::string>, std::string, std::string>>,
               std::vector<std::pair<std::string, std::string>>, std::string>;
using CountInPython =
    std::function<CounterFacts(const std::vector<TracedFacts>&, std::uint32_t, const std::string&, std::int64_t)>;

std::size_t counter_named(const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(kCounterNames, name) - kCounterNames.begin());
}

CountKernels counting(const CountInPython& count) {
  return [count](const auto& traced, auto device, const auto& compute_capability, auto steps) {
    std::vector<TracedFacts> kernels;
    for (const auto& [name, grid, block, ranges, time_ns] : traced) {
      std::vector<std::string> names;
      for (const auto& range : ranges) names.push_back(printable(range));
      kernels.emplace_back(printable(name), std::tuple_cat(grid), std::tuple_cat(block), std::move(names), time_ns);
    }
    const auto [values, sources, notes, capability] = count(kernels, device, compute_capability, steps);
    CounterTrace counters;
    counters.passes = 1;
    for (std::size_t i = 0; i < kernels.size(); ++i) counters.records.push_back({i, {}});
    for (const auto& [name, column] : values) {
      for (auto& [i, known] : counters.records) {
        if (std::isfinite(column.at(i))) known.at(counter_named(name)) = column[i];
      }
    }
    for (const auto& [name, metrics, formula, missing] : sources) {
      counters.sources.push_back({static_cast<Counter>(counter_named(name)), metrics, formula, missing});
    }
    for (const auto& [code, text] : notes) {
      add_note(counters.notes, make_note(kNoteKinds.at(index_of_note(code)), text));
    }
    return std::pair(std::move(counters), capability);
  };
}

}  // namespace

void bind_import(py::module_& module) {
  py::register_exception<kineto::TraceError>(module, "TraceError", PyExc_ValueError);
  py::class_<kineto::TraceReader>(module, "TraceReader")
      .def(py::init<>())
      .def(
          "feed",
          [](kineto::TraceReader& reader, const py::bytes& piece) {
            const std::string_view text = piece;
            const py::gil_scoped_release unlocked;
            reader.feed(text);
          },
          py::arg("piece"))
      .def_property_readonly("events", &kineto::TraceReader::events)
      .def("batches_of_replays",
           [](const kineto::TraceReader& reader) { return kineto::batches_of_replays(reader.trace()); })
      .def_property_readonly("rank", [](const kineto::TraceReader& reader) { return reader.trace().rank; })
      .def(
          "report",
          [](kineto::TraceReader& reader, const std::optional<Ceilings>& roofs,
             const std::optional<kineto::StepRange>& steps, bool mean, const std::optional<Report>& model,
             const std::vector<Call>& calls, const Parameters& parameters, const std::vector<ReadCapture>& captures,
             const std::optional<CountInPython>& counters, bool alone) {
            std::optional<kineto::CalledModel> called;
            if (model) called = called_model(*model, calls, parameters);
            return import_trace(reader.finish(), {.roofs = roofs,
                                                  .steps = steps,
                                                  .mean = mean,
                                                  .model = called ? &*called : nullptr,
                                                  .counted = model ? &data_of(*model) : nullptr,
                                                  .captures = captures_of(captures),
                                                  .counters = counters ? counting(*counters) : nullptr,
                                                  .alone = alone});
          },
          py::arg("roofs") = py::none(), py::arg("steps") = py::none(), py::arg("mean") = false,
          py::arg("model") = py::none(), py::arg("calls") = std::vector<Call>(), py::arg("parameters") = Parameters(),
          py::arg("captures") = std::vector<ReadCapture>(), py::arg("counters") = py::none(), py::arg("alone") = false);
}

}  // namespace roofprof::python
