#include "fingerprint.h"

#include <exception>

#include "tensor_walk.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// The names are made once: a dict finds interned ones by their address.
struct AttributeNames {
  PyObject* modules = PyUnicode_InternFromString("_modules");
  PyObject* parameters = PyUnicode_InternFromString("_parameters");
  PyObject* buffers = PyUnicode_InternFromString("_buffers");
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* compiled_call = PyUnicode_InternFromString("_compiled_call_impl");
};

const AttributeNames& attribute_names() {
  static const auto* names = new AttributeNames;
  return *names;
}

void for_each_own(PyObject* module, PyObject* list, const std::function<void(PyObject*)>& visit) {
  const auto attributes = attributes_of(module);  // None has none
  auto* const own = attributes ? PyDict_GetItemWithError(attributes.ptr(), list) : nullptr;
  if (own == nullptr || !PyDict_Check(own)) return;
  PyObject* name = nullptr;
  PyObject* tensor = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(own, &position, &name, &tensor);) visit(tensor);
}

}  // namespace

void for_each_own_parameter(PyObject* module, const std::function<void(PyObject*)>& visit) {
  for_each_own(module, attribute_names().parameters, visit);
}

void for_each_own_buffer(PyObject* module, const std::function<void(PyObject*)>& visit) {
  for_each_own(module, attribute_names().buffers, visit);
}

Fingerprint::Fingerprint(py::handle module) {
  add_module(module.ptr());
  seen_ = {};
}

void Fingerprint::add_module(PyObject* module) {
  add(module);
  if (module == Py_None || !seen_.insert(module).second) return;
  const auto& names = attribute_names();
  const auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(module));
  const PyObject* const forward = _PyType_Lookup(Py_TYPE(module), names.forward);
  const auto attributes = attributes_of(module);
  if (!attributes) {
    complete_ = false;
    return;
  }
  const auto attribute = [&](PyObject* name) { return PyDict_GetItemWithError(attributes.ptr(), name); };
  add(type);
  add(forward);
  add(attribute(names.forward));
  add(attribute(names.compiled_call));
  add_tensors(attribute(names.parameters));
  add_tensors(attribute(names.buffers));
  add_children(attribute(names.modules));
}

void Fingerprint::add_children(PyObject* children) {
  if (children == nullptr || !PyDict_Check(children)) {
    complete_ = false;
    return;
  }
  words_.push_back(static_cast<std::uint64_t>(PyDict_GET_SIZE(children)));
  PyObject* name = nullptr;
  PyObject* child = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(children, &position, &name, &child);) {
    words_.push_back(static_cast<std::uint64_t>(PyObject_Hash(name)));  // names come and go, unlike modules
    add_module(child);
  }
}

void Fingerprint::add_tensors(PyObject* tensors) {
  if (tensors == nullptr || !PyDict_Check(tensors)) {
    complete_ = false;
    return;
  }
  words_.push_back(static_cast<std::uint64_t>(PyDict_GET_SIZE(tensors)));
  PyObject* name = nullptr;
  PyObject* tensor = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(tensors, &position, &name, &tensor);) add_tensor(tensor);
}

void Fingerprint::add_tensor(PyObject* object) {
  add(object);
  if (!is_tensor(object)) return;
  add(Py_TYPE(object));  // lazy ones become plain ones
  const at::Tensor& tensor = THPVariable_Unpack(object);
  if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
    complete_ = false;
    return;
  }
  try {
    const auto device = tensor.device();
    words_.push_back(static_cast<std::uint64_t>(tensor.numel()));
    words_.push_back(static_cast<std::uint64_t>(tensor.scalar_type()) << 32 |
                     static_cast<std::uint64_t>(device.type()) << 16 |
                     static_cast<std::uint64_t>(static_cast<std::uint8_t>(device.index())) << 8 |
                     static_cast<std::uint64_t>(tensor.requires_grad()));
  } catch (const std::exception&) {  // a subclass may refuse to give its sizes
    complete_ = false;
  }
}

}  // namespace roofprof::python
