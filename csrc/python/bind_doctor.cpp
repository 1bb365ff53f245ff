// Binds the doctor, which finds what measuring on a GPU needs.

#include <pybind11/stl.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "device/doctor.h"

namespace roofprof::python {

void bind_doctor(pybind11::module_& module) {
  module.def("doctor", [] {
    std::vector<std::tuple<std::string, std::string, std::string>> found;
    for (Finding& finding : doctor()) {
      found.emplace_back(std::move(finding.what), std::move(finding.found), std::move(finding.advice));
    }
    return found;
  });
}

}  // namespace roofprof::python
