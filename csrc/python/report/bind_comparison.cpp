// The statistics of comparisons, for roofprof/report/comparison.

#include <pybind11/stl.h>

#include "analysis/permutation_test.h"
#include "python/report/bindings.h"

namespace py = pybind11;

namespace roofprof::python {

void bind_comparison(py::module_& module) {
  module.def("adjusted_p_values", &adjusted_p_values, py::arg("before"), py::arg("after"), py::arg("step_ns"));
}

}  // namespace roofprof::python
