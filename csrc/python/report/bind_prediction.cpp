// Predicted times: for reports, for many devices, and for those who fit the parameters.

#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/predict/collective_time.h"
#include "analysis/predict/prediction.h"
#include "python/report/bindings.h"
#include "roofprof/report.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

LaunchMode launch_mode(const std::string& name) {
  if (name == "eager") return LaunchMode::eager;
  if (name == "graph") return LaunchMode::graph;
  if (name == "compiled") return LaunchMode::compiled;
  throw std::invalid_argument("mode must be eager, graph or compiled, not '" + name + "'");
}

PredictionOptions options_of(const std::optional<std::string>& precision, std::optional<std::int64_t> batch,
                             double bandwidth, double peak, bool autocast, bool channels_last, const std::string& mode,
                             std::optional<double> host_seconds, std::int64_t ranks, const std::string& parallel) {
  PredictionOptions options;
  if (precision) {
    options.precision = dtype_from_name(*precision);
    if (*options.precision == DType::other) {
      throw std::invalid_argument("precision must be fp64, fp32, tf32, fp16, bf16, fp8 or fp4, not '" + *precision +
                                  "'");
    }
  }
  options.batch = batch;
  options.bandwidth = bandwidth;
  options.peak = peak;
  options.autocast = autocast;
  options.channels_last = channels_last;
  options.mode = launch_mode(mode);
  options.host_seconds = host_seconds;
  options.ranks = ranks;
  const auto* way = std::ranges::find(kParallelNames, parallel);
  if (way == kParallelNames.end()) {
    throw std::invalid_argument("parallel must be 'ddp', 'fsdp' or 'tp', not '" + parallel + "'");
  }
  options.parallel = static_cast<Parallel>(way - kParallelNames.begin());
  return options;
}

}  // namespace

void bind_prediction(py::module_& module) {
  py::class_<PredictionOptions>(module, "PredictionOptions", "roofprof/prediction.h says what each is.")
      .def(py::init(&options_of), py::kw_only(), py::arg("precision") = std::nullopt, py::arg("batch") = std::nullopt,
           py::arg("bandwidth") = 1.0, py::arg("peak") = 1.0, py::arg("autocast") = true,
           py::arg("channels_last") = false, py::arg("mode") = "eager", py::arg("host_seconds") = std::nullopt,
           py::arg("ranks") = 1, py::arg("parallel") = "ddp");
  py::class_<PredictionParameters>(module, "PredictionParameters",
                                   "The numbers of the prediction, as data/prediction.json has them.")
      .def(py::init([](const std::string& text) { return PredictionParameters::parsed(text); }), py::arg("text"))
      .def_static("shipped", &PredictionParameters::shipped, py::return_value_policy::reference);
  py::class_<Predictor>(module, "Predictor",
                        "Predicts totals for many devices, or for many trials of the numbers; it reads the count once.")
      .def(py::init([](const Report& report, const PredictionOptions& options) {
             return Predictor(data_of(report), options);
           }),
           py::arg("report"), py::arg("options"))
      .def_property_readonly(
          "batch", [](const Predictor& self) { return self.batch() > 0 ? std::optional(self.batch()) : std::nullopt; })
      .def_property_readonly(
          "memory", [](const Predictor& self) { return std::pair(self.weight_bytes(), self.activation_bytes()); },
          "Bytes of the weights, and of activations at their peak.")
      .def_property_readonly("steps", &Predictor::steps)
      .def_property_readonly("words", &Predictor::words)
      .def(
          "class_seconds",
          [](const Predictor& self, const Ceilings& ceilings, const PredictionParameters& parameters) {
            const auto seconds = self.class_seconds(ceilings, parameters);
            py::typing::Dict<py::str, py::float_> by_class;
            for (std::size_t i = 0; i < kOpClassCount; ++i)
              by_class[py::str(std::string(kOpClassNames[i]))] = seconds[i];
            return by_class;
          },
          py::arg("ceilings"), py::arg("parameters"))
      .def(
          "op_classes", &Predictor::op_classes,
          R"(Return the class of each op, in the order of the report's ops; "" for views and what nothing is known of.)")
      .def("op_seconds", &Predictor::op_seconds, py::arg("ceilings"), py::arg("parameters"),
           "Return the seconds of each op's kernels, all its calls together, in the order of the report's ops.")
      .def(
          "op_margins",
          [](const Predictor& self, const Ceilings& ceilings, const PredictionParameters& parameters) {
            std::vector<std::pair<double, double>> margins;
            for (const auto& of : self.op_margins(ceilings, parameters)) margins.emplace_back(of.low, of.high);
            return margins;
          },
          py::arg("ceilings"), py::arg("parameters"),
          "Return both ends of the interval of each op's kernels, as factors on its seconds, in the order of the ops.")
      .def(
          "total",
          [](const Predictor& self, const Ceilings& ceilings, const PredictionParameters& parameters) {
            const auto total = self.total(ceilings, parameters);
            return std::tuple(total.seconds, total.low, total.high, total.compute_bound);
          },
          py::arg("ceilings"), py::arg("parameters"),
          "Return seconds, both ends of their interval, and the part of ops whose arithmetic takes the longer time.");
  module.def(
      "predict_report",
      [](const Report& report, const Ceilings& ceilings, const PredictionOptions& options) {
        return report.predict(ceilings, options);
      },
      py::arg("report"), py::arg("ceilings"), py::arg("options"));
  module.def(
      "collective_seconds",
      [](const std::string& collective, double size, std::int64_t ranks, const Ceilings& ceilings,
         const PredictionParameters& parameters) {
        const auto found = std::ranges::find(kCollectiveNames, collective);
        if (found == kCollectiveNames.end()) throw std::invalid_argument("no collective is '" + collective + "'");
        const auto kind = static_cast<CollectiveKind>(found - kCollectiveNames.begin());
        return collective_seconds(kind, size, ranks, ceilings, parameters);
      },
      py::arg("collective"), py::arg("size"), py::arg("ranks"), py::arg("ceilings"), py::arg("parameters"),
      R"(Return the seconds of an "all_reduce", ... of so many bytes, as nccl-tests defines a collective's size.)");
  module.def("prediction_of", [](const Report& report) { return report.prediction(); }, py::arg("report"));
}

}  // namespace roofprof::python
