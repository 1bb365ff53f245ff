// TorchScript modules of a model: their tree, the instrumented copies that count, their attributes.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/module_python.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <map>

#include "bindings.h"
#include "module_hooks.h"
#include "observe/instrumented_copy.h"
#include "observe/operators/tensor_format.h"
#include "observe/script/script_tree.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Calls a method's copy as Python calls the method.
class PythonCopy {
 public:
  PythonCopy(std::shared_ptr<ModuleHooks> hooks, const torch::jit::Module& module, const std::string& method)
      : hooks_(std::move(hooks)),
        schema_(module.get_method(method).function().getSchema()),
        self_(module._ivalue()),
        copy_(module, method) {}

  py::object call(const py::args& args, const py::kwargs& kwargs) const {
    HANDLE_TH_ERRORS
    auto stack = torch::jit::createStackForSchema(schema_, torch::jit::tuple_slice(args), kwargs, self_);
    stack.erase(stack.begin());
    c10::IValue result;
    {
      const py::gil_scoped_release released;
      result = copy_.run(hooks_->session(), std::move(stack), [this](const auto& seen) { hooks_->keep_shapes(seen); });
    }
    return torch::jit::toPyObject(std::move(result));
    END_HANDLE_TH_ERRORS_PYBIND
  }

 private:
  std::shared_ptr<ModuleHooks> hooks_;
  c10::FunctionSchema schema_;
  c10::IValue self_;
  observe::InstrumentedCopy copy_;
};

AnyDicts script_tree(const torch::jit::Module& module) {
  AnyDicts rows;
  for (const auto& row : observe::tree_of(module).modules) {
    AnyDict facts;
    facts["path"] = row.path;
    facts["type"] = row.type;
    facts["parent"] = row.parent;
    facts["has_forward"] = row.has_forward;
    facts["same_as"] = row.same_as;
    facts["params"] = row.params;
    facts["trainable_params"] = row.trainable_params;
    facts["param_bytes"] = row.param_bytes;
    facts["buffer_bytes"] = row.buffer_bytes;
    rows.append(facts);
  }
  return rows;
}

using Sizes = std::vector<std::pair<std::int64_t, std::int64_t>>;

Sizes sizes_of(const c10::IValue& weight) {
  Sizes sizes;
  for (const auto& tensor : observe::unpacked(weight)) {
    // Two elements of four bits share a byte: one of them counts the byte, the other one nothing.
    const std::int64_t bytes = observe::bytes_of(tensor);
    const bool shared = bytes < tensor.numel();
    sizes.emplace_back(shared ? bytes : tensor.numel(), tensor.element_size());
    if (shared) sizes.emplace_back(tensor.numel() - bytes, 0);
  }
  return sizes;
}

// Returns the elements, and the bytes of one, of each tensor in a packed weight; empty for any other object.
Sizes packed_sizes(const torch::jit::Object& object) {
  return observe::is_packed_weight(*object.type()) ? sizes_of(object._ivalue()) : Sizes{};
}

// Returns the sizes of all packed weights that a ScriptModule holds, by their identity.
std::map<std::uint64_t, Sizes> packed_in_script(const torch::jit::Module& module) {
  std::map<std::uint64_t, Sizes> sizes;
  for (const auto& weight : observe::packed_weights(module)) {
    sizes.emplace(observe::identity_of_packed(weight), sizes_of(weight));
  }
  return sizes;
}

}  // namespace

void bind_scripts(py::module_& module) {
  // `module` is a ScriptModule's `_c`.
  module.def("script_tree", &script_tree, py::arg("module"));
  module.def("frozen_note", &observe::frozen_note, py::arg("module"), py::arg("path"));
  module.def("note_without_copy", &observe::note_without_copy, py::arg("path"), py::arg("reason"));
  // `weight` is a torch.ScriptObject.
  module.def("packed_sizes", &packed_sizes, py::arg("weight"));
  module.def("packed_in_script", &packed_in_script, py::arg("module"));
  py::class_<PythonCopy>(module, "InstrumentedCopy")
      .def(py::init<std::shared_ptr<ModuleHooks>, const torch::jit::Module&, const std::string&>(), py::arg("session"),
           py::arg("module"), py::arg("method"))
      .def("__call__", &PythonCopy::call);
  py::class_<observe::ScriptValues>(module, "ScriptAttributes")
      .def(py::init([](const torch::jit::Module& script) {
             return observe::ScriptValues(std::vector<c10::IValue>{script._ivalue()});
           }),
           py::arg("module"))
      .def("restore", &observe::ScriptValues::restore);
}

}  // namespace roofprof::python
