#include "python_target.h"

namespace py = pybind11;

namespace roofprof::python {

PythonTarget::PythonTarget(run::ObservedRun& run, const py::object& target)
    : SessionTarget(run, target.attr("of_model").cast<bool>()),
      target_(target),
      model_(target.attr("model")),
      args_(target.attr("args")),
      kwargs_(target.attr("kwargs")),
      of_model_(target.attr("of_model").cast<bool>()),
      defers_(target.attr("defers").cast<bool>()) {}

// Python hands the arguments back, since it may have put fake tensors in their place.
void PythonTarget::count(std::optional<Pass>& pass) {
  target_.attr("counting")(py::cpp_function(
      [&](const py::tuple& args, const py::dict& kwargs) { observe([&] { call_in_scope(args, kwargs); }, pass); }));
}

std::string PythonTarget::why_only_once() const { return target_.attr("why_only_once").cast<std::string>(); }

std::int64_t PythonTarget::undoing(const std::function<void()>& further) {
  return target_.attr("undoing")(py::cpp_function([&] { further(); })).cast<std::int64_t>();
}

void PythonTarget::prepare() {
  const py::gil_scoped_acquire gil;
  target_.attr("prepare")();
}

void PythonTarget::read_counters(const std::vector<Pass>& timed) {
  SessionTarget::read_counters(timed);
  if (timed.empty()) return;
  const auto observed_call = py::cpp_function([&] {
    prepare();
    return run().result().kernel_passes.emplace_back(observed()).wall_ns;
  });
  target_.attr("read_kernels")(observed_call, ran_compiled_code(timed.front()));
}

void PythonTarget::leave_out_counters(const std::string& why) {
  SessionTarget::leave_out_counters(why);
  target_.attr("leave_out_kernels")(why);
}

run::Compilations PythonTarget::compilations() const {
  const py::object watched = target_.attr("compilations");
  return {watched.attr("count").cast<std::int64_t>(), watched.attr("seconds").cast<double>()};
}

std::optional<std::string> PythonTarget::described(const std::exception* error) const {
  if (error == nullptr) return "what is no exception";
  const auto* raised = dynamic_cast<const py::error_already_set*>(error);
  if (raised == nullptr) return std::string("RuntimeError: ") + error->what();
  if (!raised->matches(PyExc_Exception)) return std::nullopt;  // KeyboardInterrupt, SystemExit
  return raised->type().attr("__name__").cast<std::string>() + ": " + py::str(raised->value()).cast<std::string>();
}

void PythonTarget::call() {
  const auto result = py::reinterpret_steal<py::object>(PyObject_Call(model_.ptr(), args_.ptr(), kwargs_.ptr()));
  if (!result) throw py::error_already_set();
  if (defers_) target_.attr("finish")(result);
}

void PythonTarget::call_in_scope(const py::tuple& args, const py::dict& kwargs) {
  const py::gil_scoped_acquire gil;
  target_.attr("call_in_scope")(args, kwargs);
}

void PythonTarget::hooked(const std::function<void()>& body) {
  target_.attr("hooked")(py::cpp_function([&] { body(); }));
}

void PythonTarget::waiting(const std::function<void()>& body) {
  const py::gil_scoped_release released;
  body();
}

}  // namespace roofprof::python
