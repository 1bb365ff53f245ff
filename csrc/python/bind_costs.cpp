// Costs computed by Python functions: an op's call as Python values, and the counts that come back.

#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>

#include <stdexcept>
#include <utility>

#include "bindings.h"
#include "observe/operators/tensor_format.h"
#include "ops/counting.h"
#include "read_data.h"
#include "roofprof/op_costs.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Types with the names that signatures show: torch.Size and torch.dtype.
struct TorchSize : py::object {
  using py::object::object;
  explicit TorchSize(py::object size) : py::object(std::move(size)) {}
};
struct TorchDType : py::object {
  using py::object::object;
  explicit TorchDType(py::object dtype) : py::object(std::move(dtype)) {}
};

}  // namespace
}  // namespace roofprof::python

namespace pybind11::detail {
template <>
struct handle_type_name<roofprof::python::TorchSize> {
  static constexpr auto name = const_name("torch.Size");
};
template <>
struct handle_type_name<roofprof::python::TorchDType> {
  static constexpr auto name = const_name("torch.dtype");
};
}  // namespace pybind11::detail

namespace roofprof::python {
namespace {

// Returns None where it is not known.
TorchDType dtype_object(std::int64_t element_type) {
  if (element_type < 0) return TorchDType(py::none());
  auto* dtype = torch::getTHPDtype(static_cast<c10::ScalarType>(element_type));
  return TorchDType(py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(dtype)));
}

TorchSize shape_of(const TensorDesc& tensor) {
  return TorchSize(py::module_::import("torch").attr("Size")(tensor.sizes));
}

std::int64_t element_size(const TensorDesc& tensor) {
  return tensor.element_type < 0
             ? tensor.item_bytes
             : static_cast<std::int64_t>(c10::elementSize(static_cast<c10::ScalarType>(tensor.element_type)));
}

py::list list_of(const std::vector<TensorDesc>& tensors) {
  py::list values;
  for (const auto& tensor : tensors) {
    while (values.size() < tensor.place) values.append(py::none());
    values.append(tensor);
  }
  return values;
}

py::object value_of(const ops::Argument& argument) {
  switch (argument.kind) {
    case ops::ArgumentKind::tensor:
      return argument.tensors.empty() ? py::none() : py::cast(argument.tensors.front());
    case ops::ArgumentKind::tensor_list:
      return list_of(argument.tensors);
    case ops::ArgumentKind::dtype:
      if (const auto* type = std::get_if<std::int64_t>(&argument.scalar)) return dtype_object(*type);
      return py::none();
    case ops::ArgumentKind::scalar:
      break;
  }
  return std::visit([](const auto& value) -> py::object { return py::cast(value); }, argument.scalar);
}

// (positional arguments, keyword arguments, results)
py::tuple values_of(const OpCall& call) {
  py::list positional;
  py::dict keywords;  // NOLINT(misc-const-correctness): it is filled in
  py::list results;
  for (const auto& argument : call.arguments) {
    if (argument.keyword_only) {
      keywords[py::str(argument.name)] = value_of(argument);
    } else {
      positional.append(value_of(argument));
    }
  }
  for (const auto& result : call.results) results.append(value_of(result));
  return py::make_tuple(positional, keywords, results);
}

std::string describe(py::error_already_set& error) {
  // The user wants to stop: raised again where Python looks for it next.
  if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  const auto type = py::str(error.type().attr("__name__")).cast<std::string>();
  return "its cost function raised " + type + ": " + py::str(error.value()).cast<std::string>();
}

// Calls `evaluate(positional, keywords, results, (read_bytes, write_bytes), dtype)`, which gives a dict of counts.
void call_python(py::handle evaluate, const OpCall& call, Work& work) {
  if (Py_IsInitialized() == 0) throw std::runtime_error("its cost function belongs to a Python that has ended");
  const py::gil_scoped_acquire gil;
  const py::error_scope raised_before;
  try {
    const py::tuple values = values_of(call);
    const py::object counts =
        evaluate(values[0], values[1], values[2], py::make_tuple(work.read_bytes, work.write_bytes),
                 std::string(name_of(call.compute_dtype())));
    work = read_work(counts.cast<py::dict>());
  } catch (py::error_already_set& error) {
    throw std::runtime_error(describe(error));
  }
}

}  // namespace

void bind_costs(py::module_& module) {
  py::class_<TensorDesc>(module, "TensorDescriptor", "A tensor without its data.")
      .def_property_readonly("shape", &shape_of)
      .def_property_readonly("dtype", [](const TensorDesc& tensor) { return dtype_object(tensor.element_type); })
      .def_property_readonly("ndim", &TensorDesc::dim)
      .def_property_readonly(
          "nbytes", [](const TensorDesc& tensor) { return saturating_multiply(tensor.numel(), element_size(tensor)); })
      .def("dim", &TensorDesc::dim)
      .def("numel", &TensorDesc::numel)
      .def("element_size", &element_size)
      .def(
          "size",
          [](const TensorDesc& tensor, std::optional<int> dim) {
            return dim ? py::cast(tensor.size(*dim)) : shape_of(tensor);
          },
          py::arg("dim") = py::none())
      .def("__repr__", [](const TensorDesc& tensor) {
        return py::str("TensorDescriptor(shape={}, dtype={})")
            .format(py::tuple(shape_of(tensor)), dtype_object(tensor.element_type));
      });

  module.def(
      "add_op_cost",
      [](const std::string& op, py::object evaluate, std::string formula) {
        // Kept for good: it may be running on another thread, and is not to end after Python has.
        const py::handle kept = evaluate.release();
        OpCosts::add(op, [kept](const OpCall& call, Work& work) { call_python(kept, call, work); }, std::move(formula));
      },
      py::arg("op"), py::arg("evaluate"), py::arg("formula"));
  module.def("remove_op_cost", &OpCosts::remove, py::arg("op"));
  module.def(
      "dtype_name",
      [](const py::object& dtype) {
        if (!THPDtype_Check(dtype.ptr())) throw py::type_error("dtype must be a torch.dtype");
        const auto type = reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type;
        return std::string(name_of(observe::dtype_of(type)));
      },
      py::arg("dtype"));
}

}  // namespace roofprof::python
