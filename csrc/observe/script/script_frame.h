#pragma once
// Holds the observer's knowledge of TorchScript's interpreter on one thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/profile_data.h"

namespace roofprof::observe {

class ScriptPlaces;

inline constexpr ModuleId kNoModule = -1;  // it is not known; modules around the tree have numbers below

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

}  // namespace roofprof::observe
