#include "hooks.h"

#include <array>
#include <csignal>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Guarded by the GIL.
bool held = false;
std::array<bool, NSIG> came = {};

constexpr int kTries = 100;  // a handler that raises keeps another one from being replaced: as often as it comes

PyObject* keep_signal(PyObject* /*self*/, PyObject* arguments) {
  const auto number = PyLong_AsLong(PyTuple_GetItem(arguments, 0));
  if (number > 0 && number < NSIG) came.at(static_cast<std::size_t>(number)) = true;
  PyErr_Clear();
  Py_RETURN_NONE;
}

PyMethodDef keep_signal_definition = {"keep_signal", &keep_signal, METH_VARARGS, nullptr};

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// Returns true on the main thread. Python shows it only by how it refuses to set a handler: signal 0 does not exist.
bool on_main_thread(const py::object& signal, const py::object& handler) {
  const auto set = py::reinterpret_steal<py::object>(PyObject_CallFunction(signal.ptr(), "iO", 0, handler.ptr()));
  if (set) return false;
  const py::error_already_set error;
  // what() would call Python's str(), which runs the handlers of pending signals and drops what they raise.
  const auto words = error.value().attr("args").cast<py::tuple>();
  if (words.empty() || !py::isinstance<py::str>(words[0])) return false;
  return words[0].cast<std::string>().find("out of range") != std::string::npos;
}

}  // namespace

// Called by Python at its next step. Raising the signal again instead would notify event loops twice.
int SignalsHeld::Waiting::come(void* waiting) {
  std::unique_ptr<Waiting> it(static_cast<Waiting*>(waiting));
  if (held) {
    meanwhile().push_back(it.release());
    return 0;
  }
  if (it->number == 0) {
    PyErr_Restore(it->type, it->value, it->traceback);
    return -1;
  }
  const auto signals = py::reinterpret_steal<py::object>(PyImport_ImportModule("_signal"));
  if (!signals) return -1;
  const auto handler =
      py::reinterpret_steal<py::object>(PyObject_CallMethod(signals.ptr(), "getsignal", "i", it->number));
  if (!handler) return -1;
  if (PyCallable_Check(handler.ptr()) == 0) return 0;
  auto* frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());  // NOLINT(misc-const-correctness)
  const auto done = py::reinterpret_steal<py::object>(
      PyObject_CallFunction(handler.ptr(), "iO", it->number, frame == nullptr ? Py_None : frame));
  return done ? 0 : -1;
}

std::vector<SignalsHeld::Waiting*>& SignalsHeld::Waiting::meanwhile() {
  static auto& waiting = *new std::vector<Waiting*>;
  return waiting;
}

// Replaces the handler in Python's table alone: what the system calls, and how, stays. Python runs the handlers of
// signals that came before it replaces one, and does not replace it if they raise.
bool SignalsHeld::replace(int number, const py::object& handler) {
  struct sigaction action = {};
  const bool known = sigaction(number, nullptr, &action) == 0;
  for (int i = 0; i < kTries; ++i) {
    const auto before =
        py::reinterpret_steal<py::object>(PyObject_CallFunction(signal_.ptr(), "iO", number, handler.ptr()));
    if (before) {
      if (known) sigaction(number, &action, nullptr);
      return true;
    }
    auto* error = raised_.emplace_back(new Waiting);
    PyErr_Fetch(&error->type, &error->value, &error->traceback);
  }
  return false;
}

SignalsHeld::SignalsHeld() {
  if (held || is_finalizing()) return;
  const py::error_scope raised;
  const py::module_ signals = py::module_::import("_signal");
  keep_ = py::reinterpret_steal<py::object>(PyCFunction_New(&keep_signal_definition, nullptr));
  if (!on_main_thread(signals.attr("signal"), keep_)) return;
  getsignal_ = signals.attr("getsignal");
  signal_ = signals.attr("signal");
  held = true;
  for (int number = 1; number < NSIG; ++number) {
    auto handler = py::reinterpret_steal<py::object>(PyObject_CallFunction(getsignal_.ptr(), "i", number));
    if (!handler) PyErr_Clear();
    if (!handler || PyCallable_Check(handler.ptr()) == 0) continue;  // the system's own, or none
    if (replace(number, keep_)) held_.push_back({number, std::move(handler)});
  }
}

SignalsHeld::~SignalsHeld() {
  if (!signal_) return;
  const py::error_scope raised;
  for (const auto& [number, handler] : held_) {
    const auto now = py::reinterpret_steal<py::object>(PyObject_CallFunction(getsignal_.ptr(), "i", number));
    if (!now) PyErr_Clear();
    if (now.is(keep_)) replace(number, handler);  // else somebody has set another one meanwhile
  }
  held = false;
  for (int number = 1; number < NSIG; ++number) {
    if (!std::exchange(came.at(static_cast<std::size_t>(number)), false)) continue;
    if (auto* waiting = new (std::nothrow) Waiting{.number = number}) raised_.push_back(waiting);
  }
  for (auto* waiting : std::exchange(Waiting::meanwhile(), {})) raised_.push_back(waiting);
  for (auto* waiting : raised_) {
    if (Py_AddPendingCall(&Waiting::come, waiting) == 0 || Waiting::come(waiting) == 0) continue;
    PyErr_WriteUnraisable(signal_.ptr());  // too many calls are waiting already
  }
}

py::object uninterrupted(const py::function& method) {
  const std::string doc = method.doc().is_none() ? std::string() : py::str(method.doc()).cast<std::string>();
  const py::cpp_function held_method(
      [method](const py::args& args, const py::kwargs& keywords) {
        const SignalsHeld signals;
        return py::object(method(*args, **keywords));
      },
      py::name(py::str(method.attr("__name__")).cast<std::string>().c_str()), doc.c_str());
  return py::reinterpret_steal<py::object>(PyInstanceMethod_New(held_method.ptr()));
}

py::object Uninterrupted::enter() const {
  const SignalsHeld signals;
  return inner_.attr("__enter__")();
}

py::object Uninterrupted::exit(const py::args& raised) const {
  const SignalsHeld signals;
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
