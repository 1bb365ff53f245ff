#include "call_wrappers.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <structmember.h>

#include "module_hooks.h"
#include "observe/thread_state.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

thread_local const PyObject* announced_module = nullptr;

std::vector<const CallWrappers*> open_wrappers;  // guarded by the GIL, as all that follows
PyObject* wrapper_caller = nullptr;  // makes the reported calls: owned; null: nobody else wants to know of them

// The callable that replaces a function of a class.
struct CallWrapper {
  PyObject ob_base;
  vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* weak_references;
  int users;
  bool is_forward;
};

CallWrapper* as_wrapper(PyObject* object) { return reinterpret_cast<CallWrapper*>(object); }

// Returns whether a call of the module runs here, and nothing else in it but regions.
bool is_innermost(const PyObject* module) {
  const auto& state = observe::thread_state();
  if (!state.is_observed()) return false;
  const auto frame = std::find_if(state.frames.rbegin(), state.frames.rend(),
                                  [](const auto& open) { return open.kind != observe::FrameKind::region; });
  return frame != state.frames.rend() && frame->kind == observe::FrameKind::module && frame->token == module;
}

// A call that the sessions do not know from torch's hooks.
class ReportedCall {
 public:
  ReportedCall(PyObject* module, bool is_forward) : module_(module), is_forward_(is_forward) {
    // The loop uses an index, because entering may run Python code, which may open and close wrappers.
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (std::size_t i = 0; i < open_wrappers.size(); ++i) {
      if (open_wrappers[i]->is_held()) continue;
      const py::object owner = open_wrappers[i]->owner();
      auto& hooks = *open_wrappers[i]->hooks();
      if (!(is_forward_ ? hooks.enter(module) : hooks.enter_around(module, this))) continue;
      entered_.emplace_back(owner, &hooks);
      if (is_forward_) hooks.came_by_call_wrapper = true;
    }
  }
  ReportedCall(const ReportedCall&) = delete;
  ReportedCall& operator=(const ReportedCall&) = delete;

  bool is_known() const { return !entered_.empty(); }

  // `output`: null where the call raised.
  void ends(PyObject* const* arguments, Py_ssize_t count, PyObject* names, PyObject* output) {
    if (entered_.empty()) return;
    const py::error_scope raised;
    if (!is_forward_) {
      for (const auto& [_, hooks] : entered_) hooks->leave_around(this);
      return;
    }
    const auto positional = py::reinterpret_steal<py::object>(PyTuple_New(count - 1));
    for (Py_ssize_t i = 1; positional && i < count; ++i) {
      Py_INCREF(arguments[i]);
      PyTuple_SET_ITEM(positional.ptr(), i - 1, arguments[i]);
    }
    const auto keywords = py::reinterpret_steal<py::object>(output == nullptr ? nullptr : PyDict_New());
    const Py_ssize_t named = names == nullptr || !keywords ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < named; ++i) {
      PyDict_SetItem(keywords.ptr(), PyTuple_GET_ITEM(names, i), arguments[count + i]);
    }
    PyErr_Clear();  // without memory the sizes are unknown
    for (const auto& [_, hooks] : entered_) {
      hooks->leave(module_, positional ? positional.ptr() : Py_None, keywords.ptr(),
                   output == nullptr ? Py_None : output);
    }
  }

 private:
  PyObject* module_;
  bool is_forward_;
  std::vector<std::pair<py::object, ModuleHooks*>> entered_;
};

// Calls wrapper_caller(function, *arguments, **named).
PyObject* call_by_caller(PyObject* function, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  const auto caller = py::reinterpret_borrow<py::object>(wrapper_caller);
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  std::vector<PyObject*> all{function};
  all.insert(all.end(), arguments, arguments + count + named);
  return PyObject_Vectorcall(caller.ptr(), all.data(), static_cast<std::size_t>(count) + 1, names);
}

PyObject* go_through(PyObject* self, PyObject* const* arguments, std::size_t flagged_count, PyObject* names) {
  const auto& wrapper = *as_wrapper(self);
  const auto call = [&] { return PyObject_Vectorcall(wrapper.function, arguments, flagged_count, names); };
  const auto count = PyVectorcall_NARGS(flagged_count);
  if (open_wrappers.empty() || count == 0) return call();
  PyObject* const module = arguments[0];
  if (wrapper.is_forward) {
    if (announced_module == module) {
      announced_module = nullptr;
      return call();
    }
    if (is_innermost(module)) return call();  // it calls its class's forward, or itself
  }
  ReportedCall reported(module, wrapper.is_forward);
  const bool with_caller = wrapper_caller != nullptr && wrapper.is_forward && reported.is_known();
  PyObject* const output = with_caller ? call_by_caller(wrapper.function, arguments, count, names) : call();
  reported.ends(arguments, count, names, output);
  return output;
}

PyObject* bind_wrapper(PyObject* self, PyObject* object, PyObject* /*type*/) {
  if (object != nullptr && object != Py_None) return PyMethod_New(self, object);
  Py_INCREF(self);
  return self;
}

// Returns an attribute: the wrapper's for the three names here, else the function's, __class__ too.
PyObject* attribute_of_wrapper(PyObject* self, PyObject* name) {
  for (const char* own : {"__call__", "__get__", "__reduce_ex__"}) {
    if (PyUnicode_CompareWithASCIIString(name, own) == 0) return PyObject_GenericGetAttr(self, name);
  }
  return PyObject_GetAttr(as_wrapper(self)->function, name);
}
int set_attribute_of_wrapper(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(as_wrapper(self)->function, name, value);
}

// A pickle has a function's name, by which the wrapper is found where it stands.
PyObject* reduce_wrapper(PyObject* self, PyObject* /*protocol*/) {
  return PyObject_GetAttrString(as_wrapper(self)->function, "__qualname__");
}

PyObject* function_of(PyObject* object);

// A wrapper equals its function, and what was bound of either.
PyObject* compare_wrapper(PyObject* self, PyObject* other, int comparison) {
  return PyObject_RichCompare(as_wrapper(self)->function, function_of(other), comparison);
}
Py_hash_t hash_wrapper(PyObject* self) { return PyObject_Hash(as_wrapper(self)->function); }
PyObject* repr_of_wrapper(PyObject* self) { return PyObject_Repr(as_wrapper(self)->function); }

int traverse_wrapper(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_wrapper(self)->function);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int clear_wrapper(PyObject* self) {
  Py_CLEAR(as_wrapper(self)->function);
  return 0;
}
void delete_wrapper(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (as_wrapper(self)->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  clear_wrapper(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* wrapper_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallWrapper, vectorcall), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(CallWrapper, weak_references), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyMethodDef methods[] = {{"__reduce_ex__", &reduce_wrapper, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(&bind_wrapper)},
                                {Py_tp_getattro, reinterpret_cast<void*>(&attribute_of_wrapper)},
                                {Py_tp_setattro, reinterpret_cast<void*>(&set_attribute_of_wrapper)},
                                {Py_tp_richcompare, reinterpret_cast<void*>(&compare_wrapper)},
                                {Py_tp_hash, reinterpret_cast<void*>(&hash_wrapper)},
                                {Py_tp_repr, reinterpret_cast<void*>(&repr_of_wrapper)},
                                {Py_tp_traverse, reinterpret_cast<void*>(&traverse_wrapper)},
                                {Py_tp_clear, reinterpret_cast<void*>(&clear_wrapper)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(&delete_wrapper)},
                                {Py_tp_members, members},
                                {Py_tp_methods, methods},
                                {0, nullptr}};
  static PyType_Spec spec = {
      "roofprof._C.CallWrapper", sizeof(CallWrapper), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (type == nullptr) throw py::error_already_set();
  return type;
}

PyObject* function_of(PyObject* object) { return is_call_wrapper(object) ? as_wrapper(object)->function : object; }

py::object make_wrapper(PyObject* function, bool is_forward) {
  auto* const wrapper = PyObject_GC_New(CallWrapper, wrapper_type());
  if (wrapper == nullptr) throw py::error_already_set();
  Py_INCREF(function);
  wrapper->vectorcall = &go_through;
  wrapper->function = function;
  wrapper->weak_references = nullptr;
  wrapper->users = 0;
  wrapper->is_forward = is_forward;
  PyObject_GC_Track(wrapper);
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(wrapper));
}

// Returns what the class itself has there; empty: nothing.
py::object standing_at(const WrapperPlace& place) {
  const py::object attributes = place.type.attr("__dict__");
  return attributes.contains(place.name) ? py::object(attributes[place.name]) : py::object();
}

// Sets a class's attribute without its metaclass's code.
void put_into(const WrapperPlace& place, const py::object& value) {
  if (PyType_Type.tp_setattro(place.type.ptr(), place.name.ptr(), value.ptr()) != 0) throw py::error_already_set();
}

// Returns whether a wrapper stands there now.
bool open_wrapper(const WrapperPlace& place) {
  py::object wrapper = standing_at(place);
  if (!wrapper) return false;
  if (!is_call_wrapper(wrapper.ptr())) {
    if (!PyFunction_Check(wrapper.ptr())) return false;
    wrapper = make_wrapper(wrapper.ptr(), place.is_forward);
    put_into(place, wrapper);
  }
  ++as_wrapper(wrapper.ptr())->users;
  return true;
}

void close_wrapper(const WrapperPlace& place) {
  const py::object wrapper = standing_at(place);
  if (!wrapper || !is_call_wrapper(wrapper.ptr()) || --as_wrapper(wrapper.ptr())->users > 0) return;
  put_into(place, py::reinterpret_borrow<py::object>(as_wrapper(wrapper.ptr())->function));
}

}  // namespace

bool is_call_wrapper(PyObject* object) { return Py_IS_TYPE(object, wrapper_type()); }

void announce_by_hook(const PyObject* module) { announced_module = module; }

void forget_announced(const PyObject* module) {
  if (announced_module == module) announced_module = nullptr;
}

void set_wrapper_caller(const py::object& caller) {
  Py_XDECREF(wrapper_caller);
  wrapper_caller = caller.is_none() ? nullptr : py::object(caller).release().ptr();
}

void CallWrappers::open(const py::object& owner) {
  if (hooks_ != nullptr) return;
  owner_ = owner;
  hooks_ = &owner.cast<ModuleHooks&>();
  try {
    for (const auto& place : places_) {
      if (open_wrapper(place)) put_.push_back(&place);
    }
    open_wrappers.push_back(this);
  } catch (...) {
    close();
    throw;
  }
}

CallWrappers::~CallWrappers() {
  try {
    close();
  } catch (...) {  // without memory a wrapper may stay: it lets calls through
    PyErr_Clear();
  }
}

void CallWrappers::close() {
  std::erase(open_wrappers, this);
  for (const auto* place : put_) close_wrapper(*place);
  put_.clear();
  hooks_ = nullptr;
  owner_ = py::object();
}

}  // namespace roofprof::python
