// Traces of torch.profiler, read piece by piece.

#include <pybind11/stl.h>

#include "bindings.h"
#include "importer/import_trace.h"

namespace py = pybind11;

namespace roofprof::python {

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
             const std::optional<kineto::StepRange>& steps) {
            auto [report, calls] = import_trace(reader.finish(), roofs, steps);
            std::vector<std::pair<ModuleId, std::int32_t>> pairs;
            for (const auto& call : calls) pairs.emplace_back(call.module, call.around);
            return std::pair(std::move(report), std::move(pairs));
          },
          py::arg("roofs") = py::none(), py::arg("steps") = py::none());
}

}  // namespace roofprof::python
