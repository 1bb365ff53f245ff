#pragma once
// What is known of TorchScript's interpreter on one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/profile_data.h"

namespace roofprof::observe {

// A method that the interpreter was entered with, the first line of its call stack.
struct ScriptFrame {
  const void* record = nullptr;   // the RecordFunction that ends it
  const void* session = nullptr;  // in whose pass it began, to tell frames that outlived theirs
  std::uint64_t pass = 0;
  std::string line;                // "TOP(ResNet)::forward"
  std::optional<ModuleId> module;  // whose method it is; empty: nobody's that is in the tree
  std::string method;
  ModuleId place = kModel;  // of the ops that it runs itself
};

// Where an op stands.
struct ScriptPlace {
  ModuleId module = kModel;
  bool by_lines_alone = true;  // ops with the same lines stand in the same place
};

// The last one that was looked up on a thread.
struct KnownScriptPlace : ScriptPlace {
  std::vector<std::string> lines;
  const void* session = nullptr;
  std::uint64_t pass = 0;
};

}  // namespace roofprof::observe
