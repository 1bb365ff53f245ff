#include "module_hooks.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "call_wrappers.h"
#include "fingerprint.h"
#include "hooks.h"
#include "observe/numpy_exchange.h"
#include "observe/operators/tensor_format.h"
#include "observe/own_calls.h"
#include "observe/rule/counting_rule.h"
#include "observe/thread_state.h"
#include "tensor_walk.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

using observe::has_memory;
using observe::memory_of;
using observe::MemoryRange;

constexpr std::size_t kMaxTensorsInOutput = 4096;

// Returns the memory of an array that is not a tensor.
MemoryRange memory_of_array(PyObject* array) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array, &buffer, PyBUF_STRIDED_RO) != 0) {
    PyErr_Clear();
    return {};
  }
  const auto* begin = static_cast<const char*>(buffer.buf);
  const MemoryRange range{nullptr, begin, begin + buffer.len};
  PyBuffer_Release(&buffer);
  return range;
}

// Calls see_tensor(tensor) and see_array(memory) for each; of modules and other objects, for their attributes'.
template <typename SeeTensor, typename SeeArray>
class EachTensor {
 public:
  EachTensor(SeeTensor see_tensor, SeeArray see_array)
      : see_tensor_(std::move(see_tensor)), see_array_(std::move(see_array)) {}

  bool full() const { return seen_ >= kMaxTensorsInOutput; }
  void refused() {}
  void visit(const at::Tensor& tensor) {
    ++seen_;
    see_tensor_(tensor);
  }
  void open(PyObject* object, int nesting) {
    if (PyObject_CheckBuffer(object) != 0) {
      ++seen_;
      see_array_(memory_of_array(object));
      return;
    }
    if (nesting < kMaxNesting / 2) walk_tensors(attributes_of(object).ptr(), *this, nesting + 1);
  }

 private:
  SeeTensor see_tensor_;
  SeeArray see_array_;
  std::size_t seen_ = 0;
};

template <typename SeeTensor, typename SeeArray>
void for_each_tensor(PyObject* value, SeeTensor see_tensor, SeeArray see_array) {
  EachTensor each(std::move(see_tensor), std::move(see_array));
  walk_tensors(value, each);
}

// Returns whether any of it is neither the inputs' memory nor the module's own.
bool is_any_new(std::vector<MemoryRange> found, PyObject* module, PyObject* arguments, PyObject* keywords) {
  if (found.empty()) return false;
  const auto leave_out = [&](const MemoryRange& memory) {
    std::erase_if(found, [&](const MemoryRange& other) { return other.overlaps(memory); });
  };
  for (auto* const known : {arguments, keywords, module}) {
    for_each_tensor(
        known,
        [&](const at::Tensor& tensor) {
          if (has_memory(tensor)) leave_out(memory_of(tensor));
        },
        leave_out);
  }
  return !found.empty();
}

// Returns whether a call's output can not have come from the ops that were seen in the call (`seen`): no op did any
// work, and yet the output holds memory that is neither the inputs' nor the module's own (parameters, buffers,
// attributes).
bool is_unobserved(observe::Evidence seen, PyObject* module, PyObject* arguments, PyObject* keywords,
                   PyObject* output) {
  const bool handed_out = (seen & observe::kReadOut) != 0;
  if (!observe::module_may_bypass(seen)) return false;
  std::vector<MemoryRange> unknown;
  for_each_tensor(
      output,
      [&](const at::Tensor& tensor) {
        // A single number may be a constant: torch.tensor(0.0).
        if (has_memory(tensor) && (tensor.numel() > 1 || (handed_out && tensor.numel() == 1))) {
          unknown.push_back(memory_of(tensor));
        }
      },
      [](const MemoryRange& /*array*/) {});
  return is_any_new(std::move(unknown), module, arguments, keywords);
}

using Shapes = std::vector<std::vector<std::int64_t>>;

// The most tensors whose sizes are recorded of a call: enough for people, and cheap around every call.
constexpr std::size_t kMaxTensors = 16;

// Collects the sizes of tensors in any nest of containers. Made once for each thread: its vectors keep their memory.
class ShapeReader {
 public:
  void start() {
    count_ = 0;
    bytes_ = 0;
    known_ = true;
  }
  // Returns nothing where no tensor was read, or where the sizes of one do not give its bytes.
  std::optional<std::int64_t> bytes() const { return known_ && count_ > 0 ? std::optional(bytes_) : std::nullopt; }
  void copy_to(Shapes& shapes) const {
    shapes.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) shapes[i] = shapes_[i];
  }

  void read(PyObject* value) { walk_tensors(value, *this); }

  bool full() const { return count_ >= kMaxTensors; }
  void refused() { known_ = false; }
  void visit(const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() || tensor.is_nested()) {
      known_ = false;
      return;
    }
    if (tensor.layout() != at::kStrided) known_ = false;  // sparse
    const auto sizes = tensor.sizes();
    if (count_ == shapes_.size()) shapes_.emplace_back();
    shapes_[count_++].assign(sizes.begin(), sizes.end());
    bytes_ += observe::bytes_of(tensor);
  }

  // Reads the fields of an object that is a dataclass.
  void open(PyObject* object, int nesting) {
    PyObject* const fields = in_class(Py_TYPE(object), "__dataclass_fields__");
    if (fields == nullptr || !PyDict_Check(fields)) return;
    const auto attributes = attributes_of(object);
    PyObject* name = nullptr;
    PyObject* field = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(fields, &position, &name, &field);) {
      walk_tensors(field_of(object, attributes, name).ptr(), *this, nesting + 1);
    }
  }

 private:
  Shapes shapes_;
  std::size_t count_ = 0;
  std::int64_t bytes_ = 0;
  bool known_ = true;
};

// Returns whether the returned object does its work later. (Several libraries have futures, and the type's name is the
// same.)
bool is_deferred(PyObject* output) {
  if (PyGen_CheckExact(output) || PyCoro_CheckExact(output) || PyAsyncGen_CheckExact(output)) return true;
  const char* type = Py_TYPE(output)->tp_name;
  const char* dot = std::strrchr(type, '.');
  const char* name = dot == nullptr ? type : dot + 1;
  return std::strcmp(name, "Future") == 0 || std::strcmp(name, "Task") == 0;
}

PyObject* module_enters(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count > 0) {
    announce_by_hook(arguments[0]);
    bound<ModuleHooks>(self).enter(arguments[0]);
  }
  Py_RETURN_NONE;
}

PyObject* module_leaves(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count > 0) forget_announced(arguments[0]);
  if (count == 4) bound<ModuleHooks>(self).leave(arguments[0], arguments[1], arguments[2], arguments[3]);
  // torch leaves the keywords out where it calls a hook after forward raised.
  if (count == 3) bound<ModuleHooks>(self).leave(arguments[0], arguments[1], nullptr, arguments[2]);
  Py_RETURN_NONE;
}

// Returns whether a function with one of these codes is under way on this thread.
bool runs_any_of(const py::list& codes) {
  auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* here = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(here)));
    for (const auto known : codes) {
      if (known.is(code)) return true;
    }
    frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(here)));
  }
  return false;
}

std::vector<const void*> addresses(const py::list& objects) {
  std::vector<const void*> result;
  for (const auto object : objects) result.push_back(object.is_none() ? nullptr : object.ptr());
  return result;
}

}  // namespace

PlacedModules::PlacedModules(std::vector<Module> modules_of_it, const py::list& objects_of_it, py::list forwards_of_it)
    : modules(std::move(modules_of_it)),
      index(modules, addresses(objects_of_it)),
      objects(objects_of_it),
      forwards(std::move(forwards_of_it)) {}

ModuleHooks::ModuleHooks(std::shared_ptr<const PlacedModules> tree)
    : tree_(std::move(tree)),
      session_(std::make_shared<observe::Session>(tree_->modules.size())),
      modules_(tree_->modules) {
  const py::object model = tree_->objects[index_of(kModel)];
  session_->setup.model = model.is_none() ? nullptr : model.ptr();
  for (const auto& row : tree_->modules) session_->setup.parents.push_back(row.parent);
}

bool ModuleHooks::enter(PyObject* module) {
  if (!session_->active() || session_->steps.between()) return false;
  const auto& state = observe::thread_state();
  if (!wrapped_.empty() && !state.frames.empty()) {
    const auto wrapper = wrapped_.find(state.frames.back().token);
    if (wrapper != wrapped_.end() && wrapper->second == module) return false;  // the same call
  }
  auto place = index().place_of(module, state.frames);
  if (!place && adopt(module)) place = index().place_of(module, state.frames);
  if (!place) return false;
  return is_counted(module, *place) ? session_->frames.enter(*place, module) : *place == kModel;
}

bool ModuleHooks::enter_around(PyObject* module, const void* token) {
  const auto& state = observe::thread_state();
  if (!state.is_observed() || state.is_paused()) return false;
  const auto place = index().place_of(module, state.frames);
  return place && session_->frames.enter(*place, token, observe::FrameKind::method);
}

bool ModuleHooks::is_counted(PyObject* module, ModuleId place) {
  if (observe::thread_state().is_observed()) return true;
  const auto in_model = [this] { return is_in_others_call() ? observe::InModel::yes : observe::InModel::no; };
  if (observe::is_counted(*session_, place, in_model)) return true;
  if (place != kModel) return false;
  if (others_pass_ != session_->pass()) others_calls_.clear();
  others_pass_ = session_->pass();
  others_calls_.emplace(at::RecordFunction::currentThreadId(), module);
  return false;
}

bool ModuleHooks::is_in_others_call() const {
  const auto thread = at::RecordFunction::currentThreadId();
  const auto call = others_calls_.lower_bound({thread, nullptr});
  if (others_pass_ == session_->pass() && call != others_calls_.end() && call->first == thread) return true;
  // The call may have begun before the pass, or without a hook (model.forward).
  return runs_any_of(tree_->forwards);
}

bool ModuleHooks::adopt(PyObject* wrapper) {
  if (std::strcmp(Py_TYPE(wrapper)->tp_name, "OptimizedModule") != 0) return false;
  const auto module = py::reinterpret_steal<py::object>(PyObject_GetAttrString(wrapper, "_orig_mod"));
  if (!module) PyErr_Clear();
  const auto place = module ? index().place_of(module.ptr(), observe::thread_state().frames) : std::nullopt;
  if (place) add_wrapper(py::reinterpret_borrow<py::object>(wrapper), module, *place);
  return place.has_value();
}

void ModuleHooks::add_wrapper(const py::object& wrapper, const py::object& module, ModuleId place) {
  wrapped_[wrapper.ptr()] = module.ptr();
  if (!with_wrappers_) with_wrappers_ = tree_->index;
  with_wrappers_->add(wrapper.ptr(), place);
  wrappers_.append(wrapper);
}

void ModuleHooks::leave(PyObject* module, PyObject* arguments, PyObject* keywords, PyObject* output) {
  if (session_->is_of_parent()) return;
  if (!others_calls_.empty()) {
    const auto call = others_calls_.find({at::RecordFunction::currentThreadId(), module});
    if (call != others_calls_.end()) others_calls_.erase(call);
  }
  if (record_shapes) note_unobserved(module, arguments, keywords, output);
  if (observe::thread_state().lent.memory && keywords != nullptr) note_outputs(module, output);
  const auto left = session_->frames.leave(module);
  if (!left || !record_shapes || keywords == nullptr) return;  // without keywords: it raised, and returned nothing
  thread_local ShapeReader inputs;
  thread_local ShapeReader outputs;
  inputs.start();
  inputs.read(arguments);
  inputs.read(keywords);
  outputs.start();
  outputs.read(output);
  const std::lock_guard lock(mutex_);
  if (is_deferred(output)) deferred_.insert(*left);
  auto& entry = modules_[static_cast<std::size_t>(*left)];
  inputs.copy_to(entry.input_shapes);
  outputs.copy_to(entry.output_shapes);
  entry.output_bytes = outputs.bytes();
}

void ModuleHooks::note_unobserved(PyObject* module, PyObject* arguments, PyObject* keywords, PyObject* output) {
  const char* type = Py_TYPE(module)->tp_name;
  if (is_unobserved(session_->frames.evidence_inside(module), module, arguments, keywords, output)) {
    session_->frames.note_unobserved_module(type);
    return;
  }
  auto results = session_->frames.imported(module);
  if (results.empty()) return;
  if (is_any_new(std::move(results), module, arguments, keywords)) {
    session_->frames.note_unobserved_module(type, observe::Unobserved::numpy);
  } else {
    session_->frames.forget_imported(module);
  }
}

void ModuleHooks::note_outputs(PyObject* module, PyObject* output) {
  OutputBlocks blocks;
  walk_tensors(output, blocks);
  if (blocks.known()) session_->frames.note_outputs(module, blocks.all());
}

void ModuleHooks::add_script(ModuleId place, const torch::jit::Module& script) {
  if (!scripts_) scripts_ = std::make_shared<observe::ScriptPlaces>();
  scripts_->add(script, place, modules_);
  script_roots_.push_back(place);
  session_->setup.scripts = scripts_;
}

void ModuleHooks::hide_script_calls() {
  const std::lock_guard lock(mutex_);
  for (std::size_t id = 0; id < modules_.size(); ++id) {
    const auto place = static_cast<ModuleId>(id);
    const bool inside =
        scripts_ && scripts_->is_inside(place) && std::ranges::find(script_roots_, place) == script_roots_.end();
    if (inside) modules_[id].calls_visible = false;
  }
}

void ModuleHooks::keep_shapes(const observe::ScriptCallEvent& call) {
  const std::lock_guard lock(mutex_);
  call.shapes.write_to(modules_.at(index_of(call.module)));
}

void ModuleHooks::update(ModuleId place, const Module& facts) {
  const std::lock_guard lock(mutex_);
  auto& module = modules_.at(static_cast<std::size_t>(place));
  module.type = facts.type;
  module.params = facts.params;
  module.trainable_params = facts.trainable_params;
  module.param_bytes = facts.param_bytes;
  module.buffer_bytes = facts.buffer_bytes;
}

std::vector<Module> ModuleHooks::modules() const {
  const std::lock_guard lock(mutex_);
  auto modules = modules_;
  if (const auto& reads = session_->setup.parameter_reads) {
    for (const auto place : reads->owners_of_read()) modules[index_of(place)].parameters_read = true;
  }
  if (scripts_ && scripts_->called_from_around()) {
    for (const auto place : script_roots_) modules[index_of(place)].calls_visible = false;
  }
  return modules;
}

std::set<ModuleId> ModuleHooks::deferred() const {
  const std::lock_guard lock(mutex_);
  return deferred_;
}

void ModuleHooks::tell_reads() {
  auto& owned = session_->setup.owned_storages;
  owned.clear();
  std::vector<std::pair<const at::TensorImpl*, ModuleId>> parameters;
  ModuleId place = 0;
  for (const auto object : tree_->objects) {
    for_each_own_parameter(object.ptr(), [&](PyObject* parameter) {
      if (!is_tensor(parameter)) return;
      const auto& tensor = THPVariable_Unpack(parameter);
      parameters.emplace_back(tensor.unsafeGetTensorImpl(), place);
      observe::add_owned_parameter(tensor, place, owned);
    });
    for_each_own_buffer(object.ptr(), [&](PyObject* buffer) {
      if (is_tensor(buffer)) observe::add_owned_buffer(THPVariable_Unpack(buffer), place, owned);
    });
    ++place;
  }
  session_->setup.parameter_reads = std::make_shared<observe::ParameterReads>(parameters);
}

py::object ModuleHooks::enter_hook(const py::object& owner) {
  return bind_hook<ModuleHooks, module_enters>("enter", owner);
}
py::object ModuleHooks::leave_hook(const py::object& owner) {
  return bind_hook<ModuleHooks, module_leaves>("leave", owner);
}

}  // namespace roofprof::python
