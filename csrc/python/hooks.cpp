#include "hooks.h"

#include <csignal>
#include <string>
#include <utility>

namespace py = pybind11;

namespace roofprof::python {
namespace {

bool interrupt_waits = false;  // guarded by the GIL

PyObject* keep_interrupt(PyObject* /*self*/, PyObject* /*arguments*/) {
  interrupt_waits = true;
  Py_RETURN_NONE;
}

PyMethodDef keep_interrupt_definition = {"keep_interrupt", &keep_interrupt, METH_VARARGS, nullptr};

}  // namespace

InterruptsHeld::InterruptsHeld() {
  const py::error_scope raised;
  const py::module_ signals = py::module_::import("_signal");
  const py::object handler = signals.attr("getsignal")(SIGINT);
  if (PyCallable_Check(handler.ptr()) == 0) return;  // the system's own, or none
  const auto keep = py::reinterpret_steal<py::object>(PyCFunction_New(&keep_interrupt_definition, nullptr));
  const py::object signal = signals.attr("signal");
  auto replaced = py::reinterpret_steal<py::object>(PyObject_CallFunction(signal.ptr(), "iO", SIGINT, keep.ptr()));
  if (!replaced && PyErr_ExceptionMatches(PyExc_ValueError) == 0) {
    came_before_ = true;  // handled first, and once
    PyErr_Clear();
    replaced = py::reinterpret_steal<py::object>(PyObject_CallFunction(signal.ptr(), "iO", SIGINT, keep.ptr()));
  }
  PyErr_Clear();  // not the main thread
  if (!replaced) return;
  signal_ = signal;
  handler_ = handler;
}

InterruptsHeld::~InterruptsHeld() {
  if (!signal_) return;
  const py::error_scope raised;
  // It looks for interrupts before it replaces the handler.
  Py_XDECREF(PyObject_CallFunction(signal_.ptr(), "iO", SIGINT, handler_.ptr()));
  PyErr_Clear();
  if (std::exchange(interrupt_waits, false) || came_before_) PyErr_SetInterrupt();
}

py::object uninterrupted(const py::function& method) {
  const std::string doc = method.doc().is_none() ? std::string() : py::str(method.doc()).cast<std::string>();
  const py::cpp_function held(
      [method](const py::args& args, const py::kwargs& keywords) {
        const InterruptsHeld interrupts;
        return py::object(method(*args, **keywords));
      },
      py::name(py::str(method.attr("__name__")).cast<std::string>().c_str()), doc.c_str());
  return py::reinterpret_steal<py::object>(PyInstanceMethod_New(held.ptr()));
}

py::object Uninterrupted::enter() const {
  const InterruptsHeld interrupts;
  return inner_.attr("__enter__")();
}

py::object Uninterrupted::exit(const py::args& raised) const {
  const InterruptsHeld interrupts;
  return inner_.attr("__exit__")(*raised);
}

namespace {

// The call that matters and is under way on a thread.
struct OuterCall {
  const OuterCalls* owner = nullptr;
  const PyObject* module = nullptr;
  std::int64_t nested = 0;    // calls of the same module inside
  PyObject* frame = nullptr;  // what called the hook: owned

  void forget() {
    owner = nullptr;
    Py_CLEAR(frame);
  }
};

thread_local OuterCall outer_call;

bool is_under_way(const PyObject* frame) {
  auto here = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (here) {
    if (here.ptr() == frame) return true;
    auto* inner = reinterpret_cast<PyFrameObject*>(here.ptr());
    here = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(inner)));
  }
  return false;
}

// Keeps torch's compiler from compiling this thread's calls, for as long as this lives.
class Uncompiled {
 public:
  explicit Uncompiled(const py::object& set_eval_frame)
      : set_eval_frame_(set_eval_frame),
        before_(py::reinterpret_steal<py::object>(PyObject_CallOneArg(set_eval_frame.ptr(), Py_None))) {
    if (!before_) PyErr_Clear();
  }
  ~Uncompiled() {
    if (!before_) return;
    const py::error_scope raised;
    Py_XDECREF(PyObject_CallOneArg(set_eval_frame_.ptr(), before_.ptr()));
  }
  Uncompiled(const Uncompiled&) = delete;
  Uncompiled& operator=(const Uncompiled&) = delete;

 private:
  const py::object& set_eval_frame_;
  py::object before_;
};

PyObject* outer_enters(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count == 2 && !bound<OuterCalls>(self).enter(arguments[0], arguments[1])) return nullptr;
  Py_RETURN_NONE;
}

PyObject* outer_leaves(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count > 0 && !bound<OuterCalls>(self).leave(arguments[0])) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace

OuterCalls::OuterCalls(py::object begin, py::object end)
    : begin_(std::move(begin)),
      end_(std::move(end)),
      pre_hooks_(py::module_::import("torch.nn.modules.module").attr("_global_forward_pre_hooks")),
      set_eval_frame_(py::module_::import("torch._C._dynamo.eval_frame").attr("set_eval_frame")) {}

bool OuterCalls::enter(PyObject* module, PyObject* arguments) {
  auto& call = outer_call;
  if (call.owner == this) {
    if (module != call.module) return true;
    if (is_under_way(call.frame)) {
      ++call.nested;
      return true;
    }
    call.forget();  // an interrupt ended it, after which torch calls no hooks
  }
  const Uncompiled uncompiled(set_eval_frame_);
  const py::set before(pre_hooks_);
  const auto matters =
      py::reinterpret_steal<py::object>(PyObject_CallFunctionObjArgs(begin_.ptr(), module, arguments, nullptr));
  if (!matters) return false;
  if (PyObject_IsTrue(matters.ptr()) != 1) return true;
  call = {this, module, 0, reinterpret_cast<PyObject*>(PyEval_GetFrame())};
  Py_XINCREF(call.frame);
  const py::list now(pre_hooks_);
  for (const auto key : now) {
    if (before.contains(key)) continue;
    PyObject* hook = PyDict_GetItemWithError(pre_hooks_.ptr(), key.ptr());
    if (hook == nullptr) continue;
    const auto none = py::reinterpret_steal<py::object>(PyObject_CallFunctionObjArgs(hook, module, arguments, nullptr));
    if (!none) return false;
  }
  return true;
}

bool OuterCalls::leave(PyObject* module) {
  auto& call = outer_call;
  if (call.owner != this || module != call.module) return true;
  if (call.nested > 0) {
    --call.nested;
    return true;
  }
  call.forget();
  const Uncompiled uncompiled(set_eval_frame_);
  const auto none = py::reinterpret_steal<py::object>(PyObject_CallOneArg(end_.ptr(), module));
  return static_cast<bool>(none);
}

void OuterCalls::forget() {
  if (outer_call.owner == this) outer_call.forget();
}

py::object OuterCalls::enter_hook(const py::object& owner) {
  return bind_hook<OuterCalls, outer_enters>("enter", owner);
}
py::object OuterCalls::leave_hook(const py::object& owner) {
  return bind_hook<OuterCalls, outer_leaves>("leave", owner);
}

}  // namespace roofprof::python
