#pragma once
// Finds the module that a TorchScript op belongs to: from the interpreter's call stack to modules of the tree.

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/source_range.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/profile.h"
#include "observe/modules/module_index.h"

namespace roofprof::observe {

class ScriptPlaces;

inline constexpr ModuleId kNoModule = -1;  // not known; modules around the tree have lower numbers

// A method that the interpreter was entered with, the first line of its call stack.
struct ScriptFrame {
  const void* record = nullptr;   // the RecordFunction that ends it
  const void* session = nullptr;  // in whose pass it began, to tell frames that outlived theirs
  std::uint64_t pass = 0;
  std::string line;                // "TOP(ResNet)::forward"
  std::optional<ModuleId> module;  // whose method it is; empty: of no module in the tree
  // Set for a module outside the tree that has modules of the tree below it: knows what they and it call.
  std::shared_ptr<const ScriptPlaces> around;
  std::string method;
  ModuleId place = kModel;  // of the ops that it runs itself
  // The number of times that its ops came to one of several modules which differ in nothing but their order.
  std::map<std::pair<ModuleId, std::string>, std::size_t> visits;
};

// The call stack of the interpreter at a thread's last TorchScript op, line by line.
struct KnownScriptPlace {
  struct Step {
    ModuleId module = kNoModule;  // whose method the line is
    ModuleId place = kModel;
  };
  std::vector<std::string> lines;
  std::vector<Step> steps;
  std::size_t certain = 0;  // the lines that always mean the same module; further ones need the place of the call, too
};

// TorchScript's code that runs on one thread (script_frames.h).
struct ScriptState {
  std::vector<ScriptFrame> frames;
  KnownScriptPlace place;
  const void* place_frame = nullptr;  // the record of its frame
  int instrumented_copies = 0;        // running here (instrumented_copy.h): they open their frames themselves
};

class ScriptPlaces {
 public:
  // Adds the module at `place` of the tree and all below it.
  void add(const torch::jit::Module& module, ModuleId place, const std::vector<Module>& tree);

  // Returns the places around the tree, for a module that is not in the tree but has modules of the tree below it, such
  // as the parent of the profiled model. Modules around the tree have other numbers. Null where the module has none of
  // the tree's below it. The result is kept, as each call asks for it.
  std::shared_ptr<const ScriptPlaces> around(const torch::jit::Module& module) const;
  // Returns the number that around() gives to the module that it was called with.
  ModuleId root() const { return kNoModule - 1; }
  // Returns whether code around the tree called modules of it: then their number of calls is unknown.
  bool called_from_around() const { return called_from_around_.load(std::memory_order_relaxed); }

  // Returns the place of that object, which is called now while these frames are open.
  template <class Frames>
  std::optional<ModuleId> place_of(const void* object, const Frames& frames) const {
    return index_ ? index_->place_of(object, frames) : std::nullopt;
  }
  bool is_inside(ModuleId place) const { return modules_.contains(place); }
  // is_frozen() returns whether freezing merged the submodules of the script module at `place` into it; are_frozen()
  // returns whether that holds for all.
  bool is_frozen(ModuleId place) const { return frozen_.contains(place); }
  bool are_frozen() const { return frozen_.size() == modules_.size(); }
  // Returns the only module that the interpreter is entered with by that line; empty where several or none fit.
  std::optional<ModuleId> root_of(const std::string& line) const;

  // Returns the place of the op that runs now on this thread in that frame, by the lines of
  // torch::jit::currentModuleHierarchy(). `known` belongs to the op before, in the same frame.
  ModuleId find(ScriptFrame& frame, std::vector<std::string> lines, KnownScriptPlace& known) const;

 private:
  // A call of a method of a module below: "layers.0" by its attributes' names.
  struct CallSite {
    std::vector<std::string> path;
    torch::jit::SourceRange range;
  };
  using CallSites = std::vector<CallSite>;

  // Adds what is around the tree: `module` and the modules below it.
  void add_around(const torch::jit::Module& module, ModuleId place, const ScriptPlaces& tree);
  void add_below(const torch::jit::Module& module, ModuleId place,
                 const std::unordered_map<std::string_view, ModuleId>& by_path, const std::vector<Module>& tree);
  void add_call_sites(const torch::jit::Module& module);
  std::optional<ModuleId> walk(ModuleId from, const std::vector<std::string>& path) const;
  std::vector<const CallSite*> sites_of(ModuleId caller, const std::string& method, const std::string& name) const;
  std::optional<ModuleId> callee(ScriptFrame& frame, ModuleId caller, const std::string& method,
                                 const std::string& name, bool& by_range) const;

  std::unordered_map<ModuleId, torch::jit::Module> modules_;
  std::unordered_set<ModuleId> frozen_;
  std::map<std::pair<ModuleId, std::string>, ModuleId> children_;
  std::map<std::pair<const void*, std::string>, CallSites> call_sites_;  // by class and method
  std::optional<ModuleIndex> index_;
  ModuleId last_around_ = kNoModule;
  mutable std::atomic<bool> called_from_around_{false};
  mutable std::mutex mutex_;
  // Keyed by object; the places keep it alive.
  mutable std::map<const void*, std::shared_ptr<const ScriptPlaces>> around_;
};

// Returns whether a call of that method is a call of the module: tracing names its second call forward1, scripting
// names an overload of it forward__1.
bool is_forward(std::string_view method);

// Returns whether freezing merged other modules into this one, so that they are gone.
bool was_frozen(const torch::jit::Module& module);

}  // namespace roofprof::observe
