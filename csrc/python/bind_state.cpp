// Binds what puts torch's state back after further calls of a model.

#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "plain_access.h"
#include "run/state_snapshot.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

at::Tensor tensor_in(py::handle object) {
  if (!is_tensor(object.ptr())) throw py::type_error("not a torch.Tensor");
  return THPVariable_Unpack(object.ptr());
}

// Reads the device that a tensor was made with: a subclass may compute another answer.
struct Plain : c10::TensorImpl {
  static c10::Device device_of(const c10::TensorImpl& tensor) { return (tensor.*(&Plain::device_default))(); }
};

std::vector<at::Tensor> tensors_in(const py::list& objects) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(objects.size());
  for (const auto object : objects) tensors.push_back(tensor_in(object));
  return tensors;
}

}  // namespace

void bind_state(py::module_& module) {
  module.attr("BYTES_KEPT") = run::kBytesKept;
  py::class_<run::AmbientState>(module, "AmbientState").def(py::init<>()).def("restore", &run::AmbientState::restore);
  py::class_<run::KeptTensors>(module, "KeptTensors")
      .def(py::init([](const py::list& tensors) {
             std::vector<run::ToKeep> to_keep;
             for (auto& tensor : tensors_in(tensors)) to_keep.push_back({std::move(tensor), /*by_value=*/true});
             return run::KeptTensors(to_keep);
           }),
           py::arg("tensors"))
      .def("restore", &run::KeptTensors::restore);
  py::class_<run::TensorSnapshot>(module, "TensorSnapshot")
      .def(py::init([](const py::list& tensors, const py::list& inputs, std::int64_t bytes_kept) {
             return run::TensorSnapshot(tensors_in(tensors), tensors_in(inputs), bytes_kept);
           }),
           py::arg("tensors"), py::arg("inputs"), py::arg("bytes_kept"))
      .def("why_only_once", &run::TensorSnapshot::why_only_once)
      .def(
          "keep", [](run::TensorSnapshot& self, const py::list& tensors) { self.keep(tensors_in(tensors)); },
          py::arg("tensors"))
      .def("restore", &run::TensorSnapshot::restore);
  module.def(
      "gradient_of",
      [](py::handle tensor) -> py::object {
        const auto gradient = run::gradient_of(tensor_in(tensor));
        if (!gradient || !gradient->defined()) return py::none();
        return py::reinterpret_steal<py::object>(THPVariable_Wrap(*gradient));
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

}  // namespace roofprof::python
