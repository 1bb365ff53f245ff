#pragma once
// Global forward hooks of torch.nn modules, as plain C functions: they run around every module call.

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/profile.h"
#include "observe/instrumented_copy.h"
#include "observe/modules/module_index.h"
#include "observe/script/script_places.h"
#include "observe/session.h"

namespace roofprof::python {

// The model's tree for all sessions of it: made once for as long as the tree stays as it is.
struct PlacedModules {
  // `objects[id]` is the module at tree position `id` (None for kOutside and kOptimizer).
  // `forwards`: the code of the model's own forward.
  PlacedModules(std::vector<Module> modules, const pybind11::list& objects, pybind11::list forwards);

  std::vector<Module> modules;
  observe::ModuleIndex index;
  pybind11::list objects;  // kept alive: their addresses must not be given to other objects
  pybind11::list forwards;
};

// Opens and closes a session's frames as the model's modules are called, and keeps the sizes of their inputs and
// outputs.
class ModuleHooks {
 public:
  explicit ModuleHooks(std::shared_ptr<const PlacedModules> tree);

  // Returns whether leave() is due after the call.
  bool enter(PyObject* module);
  // `arguments` and `keywords` may be null, `output` None where the module raised.
  void leave(PyObject* module, PyObject* arguments, PyObject* keywords, PyObject* output);

  // Enter and leave the code of a module around its calls, on an observed thread; enter_around() returns whether
  // leave_around() is due.
  bool enter_around(PyObject* module, const void* token);
  void leave_around(const void* token) { session_->frames.leave(token); }

  // Makes a call of `wrapper` one of the module at `place`, which it calls in turn (torch.compile's OptimizedModule).
  void add_wrapper(const pybind11::object& wrapper, const pybind11::object& module, ModuleId place);

  // Adds TorchScript at `place`, whose modules call no hooks; before the first pass.
  void add_script(ModuleId place, const torch::jit::Module& script);
  // Hides the calls of TorchScript's modules: its executor calls none, so what it ran is known, but not how often.
  void hide_script_calls();
  void keep_shapes(const observe::ScriptCallEvent& call);

  // Records from the next pass on whose parameters ops read; of the parameters that the modules have now.
  void tell_reads();

  // Returns places whose calls returned before their work was done: a generator, a coroutine, a future.
  std::set<ModuleId> deferred() const;

  // Sets type and sizes as they are now: lazy modules get theirs in their first call.
  void update(ModuleId place, const Module& facts);

  // Return callables for torch.nn.modules.module.register_module_forward_(pre_)hook; they keep `owner` alive.
  static pybind11::object enter_hook(const pybind11::object& owner);
  static pybind11::object leave_hook(const pybind11::object& owner);

  bool came_by_call_wrapper = false;  // a call of a module that torch's hooks did not report
  // Tensor sizes are recorded on each call while this is on.
  bool record_shapes = false;
  const std::shared_ptr<observe::Session>& session() const { return session_; }
  std::vector<Module> modules() const;

 private:
  // Returns whether a call that begins now on this thread belongs to what is observed.
  bool is_counted(PyObject* module, ModuleId place);
  // Returns whether this thread, on which the session has no frame open, is inside a call of the model itself.
  bool is_in_others_call() const;
  // Adds a wrapper of a module of the tree: torch.compile may make one after the profiler was made.
  bool adopt(PyObject* wrapper);
  void note_unobserved(PyObject* module, PyObject* arguments, PyObject* keywords, PyObject* output);
  void note_outputs(PyObject* module, PyObject* output);
  const observe::ModuleIndex& index() const { return with_wrappers_ ? *with_wrappers_ : tree_->index; }

  std::shared_ptr<const PlacedModules> tree_;
  std::shared_ptr<observe::Session> session_;
  std::optional<observe::ModuleIndex> with_wrappers_;  // the tree's index and they, where there are any
  std::shared_ptr<observe::ScriptPlaces> scripts_;
  std::vector<ModuleId> script_roots_;
  mutable std::mutex mutex_;  // shapes are written by every thread that calls modules
  std::vector<Module> modules_;
  std::set<ModuleId> deferred_;
  std::unordered_map<const void*, const void*> wrapped_;  // by wrapper
  // The model's calls that were left out and have not ended: thread and module. Of one pass.
  std::multiset<std::pair<std::uint64_t, const void*>> others_calls_;
  std::uint64_t others_pass_ = 0;
  pybind11::list wrappers_;  // kept alive, as the tree's objects
};

}  // namespace roofprof::python
