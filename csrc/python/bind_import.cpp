// Traces of torch.profiler, read piece by piece.

#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "core/profile_data.h"
#include "kineto/importer/import_trace.h"

namespace py = pybind11;

namespace roofprof::python {

namespace {

// The path of a module, and the index of the call around it.
using Call = std::pair<std::string, std::int32_t>;

// Modules that the count has no row for are left out, with what they called taken for their caller's.
kineto::CalledModel called_model(const Report& counted, const std::vector<Call>& calls) {
  kineto::CalledModel model;
  model.modules = counted.data().modules;
  std::map<std::string, ModuleId> ids;
  for (std::size_t id = 0; id < model.modules.size(); ++id) {
    if (model.modules[id].type != kRegionType) ids.emplace(model.modules[id].path, static_cast<ModuleId>(id));
  }
  std::vector<std::int32_t> kept;  // by call: its index in model.calls, or that of the call around it
  for (const auto& [path, around] : calls) {
    const auto caller = around < 0 ? -1 : kept.at(static_cast<std::size_t>(around));
    const auto known = ids.find(path);
    if (known != ids.end()) model.calls.push_back({known->second, caller});
    kept.push_back(known == ids.end() ? caller : static_cast<std::int32_t>(model.calls.size()) - 1);
  }
  return model;
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
      .def(
          "report",
          [](kineto::TraceReader& reader, const std::optional<Ceilings>& roofs,
             const std::optional<kineto::StepRange>& steps, bool mean, const Report* model,
             const std::vector<Call>& calls) {
            if (model == nullptr) return import_trace(reader.finish(), roofs, steps, mean);
            const auto called = called_model(*model, calls);
            return import_trace(reader.finish(), roofs, steps, mean, &called);
          },
          py::arg("roofs") = py::none(), py::arg("steps") = py::none(), py::arg("mean") = false,
          py::arg("model") = nullptr, py::arg("calls") = std::vector<Call>());
}

}  // namespace roofprof::python
