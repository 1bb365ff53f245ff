#include "short_calls.h"

#include <torch/csrc/jit/frontend/tracer.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "call_wrappers.h"
#include "module_hooks.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

// The names are made once: a dict finds interned ones by their address.
struct Names {
  PyObject* call = interned("__call__");
  PyObject* call_impl = interned("_call_impl");
  PyObject* compiled_call = interned("_compiled_call_impl");
  PyObject* getattribute = interned("__getattribute__");
  PyObject* forward = interned("forward");
  std::array<PyObject*, 4> own_hooks = {interned("_forward_pre_hooks"), interned("_forward_hooks"),
                                        interned("_backward_pre_hooks"), interned("_backward_hooks")};
  PyObject* hooks_before = interned("_global_forward_pre_hooks");
  PyObject* hooks_after = interned("_global_forward_hooks");
  std::array<PyObject*, 2> hooks_of_backward = {interned("_global_backward_pre_hooks"),
                                                interned("_global_backward_hooks")};
};

const Names& names() {
  static const auto* all = new Names;
  return *all;
}

// A function, and the code that it had.
struct Known {
  py::object function;
  const PyObject* code = nullptr;

  static Known in(PyTypeObject* type, PyObject* name) {
    PyObject* const found = _PyType_Lookup(type, name);
    if (found == nullptr || !PyFunction_Check(found)) return {};
    return {py::reinterpret_borrow<py::object>(found), PyFunction_GET_CODE(found)};
  }
  bool is_as_it_was() const { return PyFunction_GET_CODE(function.ptr()) == code; }
};

// torch's own call of a module.
struct TorchsCall {
  PyTypeObject* module = nullptr;
  Known call;
  Known call_impl;
  PyObject* globals = nullptr;  // of both
  ternaryfunc slot = nullptr;   // of all classes whose __call__ is a Python function
};

// Facts of a class, valid while the version of its attributes and its bases' is `version`; 0: not examined yet.
struct KnownType {
  unsigned int version = 0;
  PyObject* forward = nullptr;  // borrowed; null: its calls are not short
  int users = 0;
};

// Guarded by the GIL. Never destroyed: Python may have ended by then.
struct State {
  TorchsCall torchs;
  std::vector<const ShortCalls*> open;
  std::unordered_map<PyTypeObject*, KnownType> types;
};

State& state() {
  static auto* const all = new State;
  return *all;
}

unsigned int version_of(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030C0000
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return type->tp_version_tag;
}

// Returns the function that a call of such a module comes to, if nothing but attributes that it has itself can make it
// another one; else null.
PyObject* forward_of(PyTypeObject* type, const TorchsCall& torchs) {
  const auto is = [type](PyObject* name, PyObject* expected) { return _PyType_Lookup(type, name) == expected; };
  if (!is(names().call, torchs.call.function.ptr()) || !is(names().call_impl, torchs.call_impl.function.ptr()) ||
      !is(names().compiled_call, Py_None)) {
    return nullptr;
  }
  if (type->tp_getattro != torchs.module->tp_getattro ||
      !is(names().getattribute, _PyType_Lookup(&PyBaseObject_Type, names().getattribute))) {
    return nullptr;
  }
  if (!std::ranges::all_of(names().own_hooks, [&](PyObject* name) { return is(name, nullptr); })) return nullptr;
  PyObject* const forward = _PyType_Lookup(type, names().forward);
  return forward != nullptr && (PyFunction_Check(forward) || is_call_wrapper(forward)) ? forward : nullptr;
}

// Returns the same from memory, where the class has not changed.
PyObject* known_forward_of(PyTypeObject* type, State& in) {
  const auto known = in.types.find(type);
  if (known == in.types.end()) return nullptr;
  auto& it = known->second;
  if (it.version == 0 || it.version != version_of(type)) {
    it.forward = forward_of(type, in.torchs);
    it.version = version_of(type);
  }
  return it.forward;
}

// Returns whether a dict's value under that name is a dict with so many entries.
bool has_dict_of(PyObject* dict, PyObject* name, Py_ssize_t size) {
  PyObject* const value = PyDict_GetItemWithError(dict, name);
  return value != nullptr && PyDict_Check(value) && PyDict_GET_SIZE(value) == size;
}

// Returns whether something wants to see the frames of torch's code: a tracer, a profiler, torch's compiler.
bool is_watched() {
  const auto* const thread = PyThreadState_Get();
  return thread->c_tracefunc != nullptr || thread->c_profilefunc != nullptr ||
         _PyInterpreterState_GetEvalFrameFunc(thread->interp) != &_PyEval_EvalFrameDefault;
}

// Returns whether torch has these hooks for all modules, and no others.
bool has_only(const ShortCalls& calls, PyObject* globals) {
  const auto none = [&](PyObject* name) { return has_dict_of(globals, name, 0); };
  if (!std::ranges::all_of(names().hooks_of_backward, none)) return false;
  PyObject* const before = PyDict_GetItemWithError(globals, names().hooks_before);
  PyObject* const after = PyDict_GetItemWithError(globals, names().hooks_after);
  if (before == nullptr || !PyDict_Check(before) || after == nullptr || !PyDict_Check(after)) return false;
  const auto ours = PyList_GET_SIZE(calls.before().ptr());
  if (PyDict_GET_SIZE(before) != ours || PyDict_GET_SIZE(after) != 1) return false;
  for (Py_ssize_t i = 0; i < ours; ++i) {
    if (PyDict_GetItemWithError(before, PyList_GET_ITEM(calls.before().ptr(), i)) == nullptr) return false;
  }
  return PyDict_GetItemWithError(after, calls.after().ptr()) != nullptr;
}

// The function that torch calls for a module.
struct Forward {
  py::object function;
  bool is_bound = false;  // the module's own attribute

  static Forward of(PyObject* function, bool is_bound) {
    return {py::reinterpret_borrow<py::object>(function), is_bound};
  }
};

// Returns the function; nothing where it is not certain, or torch does more than call it and the session's hooks.
Forward short_forward(PyObject* module, State& in) {
  if (in.open.size() != 1 || in.open.front()->is_observed(module)) return {};
  if (is_watched() || torch::jit::tracer::isTracing()) return {};
  const auto& torchs = in.torchs;
  if (!torchs.call.is_as_it_was() || !torchs.call_impl.is_as_it_was()) return {};
  if (!has_only(*in.open.front(), torchs.globals)) return {};
  PyObject* const of_type = known_forward_of(Py_TYPE(module), in);
  if (of_type == nullptr) return {};
  PyObject* const* const place = _PyObject_GetDictPtr(module);
  if (place == nullptr || *place == nullptr) return {};
  PyObject* const own = *place;
  for (auto* const hooks : names().own_hooks) {
    if (!has_dict_of(own, hooks, 0)) return {};
  }
  const PyObject* const compiled = PyDict_GetItemWithError(own, names().compiled_call);
  if (compiled != nullptr && compiled != Py_None) return {};
  if (PyDict_GetItemWithError(own, names().call_impl) != nullptr) return {};
  PyObject* const replaced = PyDict_GetItemWithError(own, names().forward);
  return replaced != nullptr ? Forward::of(replaced, true) : Forward::of(of_type, false);
}

constexpr Py_ssize_t kMostOnStack = 8;

PyObject* call(const Forward& forward, PyObject* module, PyObject* arguments, PyObject* keywords) {
  const auto& function = forward.function;
  if (forward.is_bound) return PyObject_Call(function.ptr(), arguments, keywords);
  const auto count = PyTuple_GET_SIZE(arguments);
  if (count > kMostOnStack || (keywords != nullptr && PyDict_GET_SIZE(keywords) > 0)) {
    const auto method = py::reinterpret_steal<py::object>(PyMethod_New(function.ptr(), module));
    return method ? PyObject_Call(method.ptr(), arguments, keywords) : nullptr;
  }
  std::array<PyObject*, kMostOnStack + 1> all = {module};
  for (Py_ssize_t i = 0; i < count; ++i) all.at(static_cast<std::size_t>(i) + 1) = PyTuple_GET_ITEM(arguments, i);
  return PyObject_Vectorcall(function.ptr(), all.data(), static_cast<std::size_t>(count) + 1, nullptr);
}

PyObject* short_call(PyObject* module, PyObject* arguments, PyObject* keywords) {
  auto& in = state();
  const auto forward = short_forward(module, in);
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): it is set before any class gets this function
  if (!forward.function) return in.torchs.slot(module, arguments, keywords);
  const py::object owner = in.open.front()->owner();  // it may be closed meanwhile
  auto& hooks = in.open.front()->hooks();
  announce_by_hook(module);
  hooks.enter(module);
  PyObject* const output = call(forward, module, arguments, keywords);
  if (output != nullptr) {
    forget_announced(module);
    static PyObject* const none_given = PyDict_New();
    hooks.leave(module, arguments, keywords == nullptr ? none_given : keywords, output);
  } else if (PyErr_ExceptionMatches(PyExc_Exception) != 0) {  // else torch calls no hooks
    const py::error_scope raised;
    forget_announced(module);
    hooks.leave(module, arguments, nullptr, Py_None);
  }
  return output;
}

// Notes the call that torch.nn.Module has now; returns whether that is possible.
bool note_torchs_call(TorchsCall& torchs) {
  const py::object type = py::module_::import("torch.nn.modules.module").attr("Module");
  auto* const module = reinterpret_cast<PyTypeObject*>(type.ptr());
  auto call = Known::in(module, names().call);
  auto call_impl = Known::in(module, names().call_impl);
  if (!call.function || !call_impl.function) return false;
  PyObject* const globals = PyFunction_GET_GLOBALS(call_impl.function.ptr());
  const auto slot = torchs.slot == nullptr ? module->tp_call : torchs.slot;
  torchs = {module, std::move(call), std::move(call_impl), globals, slot};
  return true;
}

}  // namespace

ShortCalls::~ShortCalls() { close(); }

void ShortCalls::open(const py::object& owner, const py::typing::List<py::int_>& before, const py::object& after) {
  auto& in = state();
  if (in.open.empty() && !note_torchs_call(in.torchs)) return;
  const bool again = hooks_ != nullptr;
  owner_ = owner;
  hooks_ = &owner.cast<ModuleHooks&>();
  before_ = before;
  after_ = after;
  for (const auto& object : types_) {
    auto* const type = reinterpret_cast<PyTypeObject*>(object.ptr());
    if (!again) ++in.types[type].users;
    if (type->tp_call == in.torchs.slot) type->tp_call = &short_call;
  }
  if (!again) in.open.push_back(this);
}

void ShortCalls::close() {
  if (hooks_ == nullptr) return;
  hooks_ = nullptr;
  auto& in = state();
  std::erase(in.open, this);
  for (const auto& object : types_) {
    auto* const type = reinterpret_cast<PyTypeObject*>(object.ptr());
    const auto known = in.types.find(type);
    if (--known->second.users > 0) continue;
    in.types.erase(known);
    if (type->tp_call == &short_call) type->tp_call = in.torchs.slot;
  }
  owner_ = py::object();
}

}  // namespace roofprof::python
