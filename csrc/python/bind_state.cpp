// What further calls of a model change in torch's state, put back.

#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

#include <vector>

#include "bindings.h"
#include "run/state_snapshot.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

at::Tensor tensor_in(py::handle object) {
  if (!THPVariable_Check(object.ptr())) throw py::type_error("not a torch.Tensor");
  return THPVariable_Unpack(object.ptr());
}

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
  py::class_<run::KeptTensor>(module, "KeptTensor")
      .def(py::init(
               [](const py::object& tensor, bool by_value) { return run::KeptTensor(tensor_in(tensor), by_value); }),
           py::arg("tensor"), py::arg("by_value"))
      .def("restore", &run::KeptTensor::restore);
  py::class_<run::TensorSnapshot>(module, "TensorSnapshot")
      .def(py::init([](const py::list& tensors, const py::list& inputs, std::int64_t bytes_kept) {
             return run::TensorSnapshot(tensors_in(tensors), tensors_in(inputs), bytes_kept);
           }),
           py::arg("tensors"), py::arg("inputs"), py::arg("bytes_kept"))
      .def(
          "keep", [](run::TensorSnapshot& self, const py::list& tensors) { self.keep(tensors_in(tensors)); },
          py::arg("tensors"))
      .def("restore", &run::TensorSnapshot::restore);
}

}  // namespace roofprof::python
