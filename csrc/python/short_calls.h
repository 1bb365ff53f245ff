#pragma once
// Calls of modules without torch's Python code around forward, where that code would do nothing but call our hooks.

#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace roofprof::python {

class ModuleHooks;

// While this is open, modules of these classes are called from C: forward, between a session's hooks. A call about
// which something is not certain is left to torch, with the hooks as they are registered there.
//
// It stands in the classes' slot for calls (tp_call), where no Python code looks: attributes and caches of the classes
// stay as they are. Where others put a `__call__` into one of the classes or their bases, Python replaces the slots and
// calls that.
class ShortCalls {
 public:
  // `observed`: the ids of modules whose calls must do more than the session's hooks.
  ShortCalls(std::vector<pybind11::object> types, std::set<std::uintptr_t> observed)
      : types_(std::move(types)), observed_(std::move(observed)) {}
  ~ShortCalls();
  ShortCalls(const ShortCalls&) = delete;
  ShortCalls& operator=(const ShortCalls&) = delete;

  // `owner` is a ModuleHooks. torch has its hooks, and others that do nothing for modules that are not `observed`,
  // under these numbers. May be called again: others may have set slots meanwhile.
  void open(const pybind11::object& owner, const pybind11::typing::List<pybind11::int_>& before,
            const pybind11::object& after);
  void close();

  const pybind11::list& before() const { return before_; }
  const pybind11::object& after() const { return after_; }
  bool is_observed(PyObject* module) const {
    return !observed_.empty() && observed_.contains(reinterpret_cast<std::uintptr_t>(module));
  }
  ModuleHooks& hooks() const { return *hooks_; }
  const pybind11::object& owner() const { return owner_; }

 private:
  std::vector<pybind11::object> types_;
  std::set<std::uintptr_t> observed_;
  pybind11::object owner_;
  pybind11::list before_;
  pybind11::object after_;
  ModuleHooks* hooks_ = nullptr;
};

}  // namespace roofprof::python
