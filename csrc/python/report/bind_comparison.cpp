// Binds the statistics of comparisons, for roofprof/report/comparison and roofprof/report/scaling.

#include <pybind11/stl.h>

#include "analysis/permutation_test.h"
#include "analysis/scaling_law.h"
#include "python/report/bindings.h"

namespace py = pybind11;

namespace roofprof::python {

void bind_comparison(py::module_& module) {
  module.def("adjusted_p_values", &adjusted_p_values, py::arg("before"), py::arg("after"), py::arg("step_ns"));
  py::class_<ScalingLaw>(module, "ScalingLaw")
      .def(py::init(&fit_scaling_law), py::arg("ranks"), py::arg("throughputs"), py::arg("errors"))
      .def_readonly("costs", &ScalingLaw::costs)
      .def_readonly("from_residuals", &ScalingLaw::from_residuals)
      .def("interval", &ScalingLaw::interval, py::arg("ranks"), py::arg("share"))
      .def(
          py::pickle([](const ScalingLaw& self) { return py::make_tuple(self.costs, self.from_residuals, self.draws); },
                     [](const py::tuple& stored) {
                       return ScalingLaw{stored[0].cast<ScalingLaw::Costs>(), stored[1].cast<bool>(),
                                         stored[2].cast<std::vector<std::vector<ScalingLaw::Costs>>>()};
                     }));
}

}  // namespace roofprof::python
