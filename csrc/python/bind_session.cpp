// Binds observation: the hooks of a session, and what Python code marks (regions and declared work).

#include <pybind11/operators.h>
#include <pybind11/stl.h>
#include <torch/csrc/jit/api/module.h>

#include "backward_runs.h"
#include "bindings.h"
#include "call_wrappers.h"
#include "fingerprint.h"
#include "hooks.h"
#include "module_hooks.h"
#include "observe/declared_work.h"
#include "observe/graph_calls.h"
#include "observe/handed_over.h"
#include "observe/op_observer.h"
#include "observe/operators/op_info.h"
#include "observe/own_calls.h"
#include "observe/regions.h"
#include "observe/session.h"
#include "read_data.h"
#include "short_calls.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Says in the signature that it may be None.
template <class Value>
std::optional<std::shared_ptr<Value>> known(std::shared_ptr<Value> value) {
  return value ? std::optional(std::move(value)) : std::nullopt;
}

void bind_scopes(py::module_& module) {
  // `token` is the object that closes the region.
  module.def(
      "open_region", [](std::string_view name, const py::object& token) { observe::open_region(name, token.ptr()); },
      py::arg("name"), py::arg("token"));
  module.def("tell_compiled_range", &observe::tell_compiled_range, py::arg("name"), py::arg("has_graph"));
  module.def("check_name", &observe::check_name, py::arg("name"));
  module.def("is_region_open", &observe::is_region_open, py::arg("name"));
  module.def("close_region", [](const py::object& token) { observe::close_region(token.ptr()); }, py::arg("token"));

  module.def(
      "declare_work",
      [](std::string_view name, const AnyDict& counts) { return observe::declare_work(name, read_work(counts)); },
      py::arg("name"), py::arg("counts"));
  module.def(
      "open_work",
      [](std::string_view name, const AnyDict& counts, const py::object& token) {
        observe::open_work(name, read_work(counts), token.ptr());
      },
      py::arg("name"), py::arg("counts"), py::arg("token"));
  module.def("close_work", [](const py::object& token) { observe::close_work(token.ptr()); }, py::arg("token"));
}

}  // namespace

void bind_session(py::module_& module) {
  py::class_<Fingerprint>(module, "Fingerprint",
                          "Identifies a module and all below it: two are equal if nothing changed that a tree has.")
      .def(py::init<py::handle>(), py::arg("module"))
      .def(py::self == py::self);  // NOLINT(misc-redundant-expression)
  py::class_<PlacedModules, std::shared_ptr<PlacedModules>>(module, "PlacedModules")
      .def(py::init([](const AnyDicts& modules, const Objects& objects, const Objects& forwards) {
             return std::make_shared<PlacedModules>(read_modules(modules), objects, forwards);
           }),
           py::arg("modules"), py::arg("objects"), py::arg("forwards"));
  py::class_<ModuleHooks, std::shared_ptr<ModuleHooks>>(module, "ModuleHooks")
      .def(py::init([](std::shared_ptr<PlacedModules> tree) { return std::make_shared<ModuleHooks>(std::move(tree)); }),
           py::arg("tree"))
      .def_property_readonly("enter_hook", [](const py::object& self) { return ModuleHooks::enter_hook(self); })
      .def_property_readonly("leave_hook", [](const py::object& self) { return ModuleHooks::leave_hook(self); })
      .def(
          "update",
          [](ModuleHooks& hooks, ModuleId place, const AnyDict& facts) { hooks.update(place, read_module(facts)); },
          py::arg("place"), py::arg("facts"))
      .def("tell_reads", &ModuleHooks::tell_reads)
      .def_readonly("came_by_call_wrapper", &ModuleHooks::came_by_call_wrapper)
      .def_readwrite("record_shapes", &ModuleHooks::record_shapes)
      .def_property_readonly("active", [](const ModuleHooks& hooks) { return hooks.session()->active(); })
      .def("enter_method",
           [](ModuleHooks& hooks) { return hooks.session()->frames.enter(kModel, &hooks, observe::FrameKind::method); })
      .def("leave_method",
           [](ModuleHooks& hooks) {
             hooks.session()->frames.count_if_uncalled(kModel);
             hooks.session()->frames.leave(&hooks);
           })
      .def_property_readonly("deferred", &ModuleHooks::deferred)
      .def_property_readonly("is_of_parent", [](const ModuleHooks& hooks) { return hooks.session()->is_of_parent(); })
      .def("enter_model", [](ModuleHooks& hooks) { return hooks.session()->frames.enter(kModel, &hooks); })
      .def(
          "add_wrapper",
          [](ModuleHooks& hooks, const py::object& wrapper, const py::object& wrapped, ModuleId place) {
            hooks.add_wrapper(wrapper, wrapped, place);
          },
          py::arg("wrapper"), py::arg("module"), py::arg("place"))
      .def(
          "add_script",
          [](ModuleHooks& hooks, ModuleId place, const torch::jit::Module& module) { hooks.add_script(place, module); },
          py::arg("place"), py::arg("module"))
      .def(
          "name_call",
          [](ModuleHooks& hooks, const py::object& called, const std::string& name) {
            return observe::name_call(*hooks.session(), called.ptr(), name);
          },
          py::arg("module"), py::arg("name"))
      .def("hide_script_calls", &ModuleHooks::hide_script_calls)
      .def("enter_graph", [](ModuleHooks& hooks, std::int64_t graph) { observe::enter_graph(*hooks.session(), graph); })
      .def("leave_graph", [](ModuleHooks& hooks) { observe::leave_graph(*hooks.session()); })
      .def("pause", [](ModuleHooks& hooks) { hooks.session()->frames.pause(); })
      .def("resume", [](ModuleHooks& hooks) { hooks.session()->frames.resume(); })
      .def("enter_optimizer",
           [](ModuleHooks& hooks, const py::object& optimizer) {
             return hooks.session()->frames.enter_optimizer(optimizer.ptr());
           })
      .def("leave_optimizer",
           [](ModuleHooks& hooks, const py::object& optimizer) { hooks.session()->frames.leave(optimizer.ptr()); })
      .def("enter_closure",
           [](ModuleHooks& hooks, const py::object& closure) {
             return hooks.session()->frames.enter_closure(closure.ptr());
           })
      .def("leave_closure",
           [](ModuleHooks& hooks, const py::object& closure) { hooks.session()->frames.leave(closure.ptr()); });

  using Places = py::typing::List<py::typing::Tuple<py::type, py::str, py::bool_>>;
  py::class_<CallWrappers>(
      module, "CallWrappers",
      "Callables in the place of functions of classes, which report calls of modules that torch does not announce.")
      .def(py::init([](const Places& places) {
             std::vector<WrapperPlace> read;
             for (const auto& place : places) {
               const auto [type, name, is_forward] = place.cast<std::tuple<py::object, py::str, bool>>();
               read.push_back({type, name, is_forward});
             }
             return std::make_unique<CallWrappers>(std::move(read));
           }),
           py::arg("places"))
      .def("open", &CallWrappers::open, py::arg("session"))
      .def("close", &CallWrappers::close)
      .def("hold", &CallWrappers::hold)
      .def("release", &CallWrappers::release);
  py::class_<ShortCalls>(module, "ShortCalls")
      .def(py::init<std::vector<py::object>, std::set<std::uintptr_t>>(), py::arg("types"), py::arg("observed"))
      .def("open", &ShortCalls::open, py::arg("session"), py::arg("before"), py::arg("after"))
      .def("close", &ShortCalls::close);
  module.def("set_wrapper_caller", &set_wrapper_caller, py::arg("caller"));

  py::class_<OuterCalls, std::shared_ptr<OuterCalls>>(
      module, "OuterCalls", "Hooks that ask whether a module call matters, unless it is inside of a call that does.")
      .def(py::init<py::object, py::object>(), py::arg("begin"), py::arg("end"))
      .def("forget", &OuterCalls::forget)
      .def_property_readonly("enter_hook", [](const py::object& self) { return OuterCalls::enter_hook(self); })
      .def_property_readonly("leave_hook", [](const py::object& self) { return OuterCalls::leave_hook(self); });

  py::class_<BackwardRuns, std::unique_ptr<BackwardRuns, py::nodelete>>(
      module, "BackwardRuns",
      "Knows which calls a backward went through, by the autograd nodes that they made. There is one in a process.")
      .def(py::init([] { return &BackwardRuns::instance(); }))
      .def("watch", &BackwardRuns::watch)
      .def("ignore", &BackwardRuns::ignore)
      .def("add", &BackwardRuns::add, py::arg("first"))
      .def("reached", &BackwardRuns::reached, py::arg("call"))
      .def("forget_before", &BackwardRuns::forget_before, py::arg("call"))
      .def_property_readonly("next_node", [](const BackwardRuns& /*self*/) { return BackwardRuns::next_node(); })
      .def_property_readonly("nodes", &BackwardRuns::nodes);

  using Method = py::typing::Callable<py::object(py::ellipsis)>;
  module.def(
      "uninterrupted", [](const Method& method) { return uninterrupted(method); }, py::arg("method"),
      "Return the same method, in which signals wait until it has ended.");
  py::class_<Uninterrupted>(module, "Uninterrupted",
                            "Wraps a context manager whose beginning and end are not interrupted.")
      .def(py::init<py::object>(), py::arg("inner"))
      .def("__enter__", &Uninterrupted::enter)
      .def("__exit__", &Uninterrupted::exit);

  // Serves threads that Python starts: the thread that starts one hands over the call or block that it works for.
  // NOLINTNEXTLINE(bugprone-unused-raii)
  py::class_<observe::OwnCallData, std::shared_ptr<observe::OwnCallData>>(
      module, "OwnCall", "A run's call or block, which is handed to the threads that it starts.");
  module.def("own_call",
             [] { return known(std::const_pointer_cast<observe::OwnCallData>(observe::call_of_this_thread())); });
  py::class_<observe::WorksFor>(
      module, "WorksFor", "Makes this thread work for that call while this object lives; drop it on the same thread.")
      .def(py::init<std::shared_ptr<observe::OwnCallData>>(), py::arg("call"));

  // NOLINTNEXTLINE(bugprone-unused-raii)
  py::class_<observe::LaterPlace, std::shared_ptr<observe::LaterPlace>>(
      module, "LaterPlace", "Where an observed thread was when it asked for work that begins later.");
  module.def("place_for_later", [] { return known(observe::place_for_later()); });
  py::class_<observe::RunsAtPlace>(
      module, "RunsAtPlace",
      "Makes what runs on this thread belong there while this object lives; drop it on the same thread.")
      .def(py::init<const std::shared_ptr<observe::LaterPlace>&>(), py::arg("place"));

  bind_scopes(module);
}

}  // namespace roofprof::python
