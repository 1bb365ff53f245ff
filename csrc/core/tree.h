#pragma once
// The modules of a model and the regions of its program: where things ran.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"

namespace roofprof {

// Module::type of a region, which the user's code opened while it ran. No module: it has no parameters, shapes or
// forward.
inline constexpr std::string_view kRegionType = "region";

struct Module {
  std::string path = {};
  std::string type = {};
  std::string source = {};  // where its forward is written, "FILE:LINE"; empty: torch's own, in C++, or not known
  ModuleId parent = -1;     // -1: a root (the model, "(outside)", "(optimizer)")
  bool has_forward = true;  // containers (ModuleList, ModuleDict) have none and are never "uncalled"
  bool calls_visible = true;
  bool forward_of_torch = false;  // not the user's: others take its children (Sequential) or parameters instead
  bool parameters_read = false;   // ops read its own parameters, wherever they ran; unknown in C++
  bool parameters_tied = false;   // other modules have all its own parameters, too; unknown in C++
  bool inferred = false;
  ModuleId same_as = -1;  // the first place of the same module, where it stands at several; -1: this is the first
  // Set where the module ran inside the compiled region of this module, whose row has the time of both; -1: its row has
  // its time.
  ModuleId compiled_region = -1;
  bool params_known = true;  // false: a trace was read, which does not tell them
  // Sums over the subtree, tied parameters once.
  std::int64_t params = 0;
  std::int64_t trainable_params = 0;
  std::int64_t param_bytes = 0;
  std::int64_t buffer_bytes = 0;
  // Shapes and bytes of the last call.
  std::vector<std::vector<std::int64_t>> input_shapes = {};
  std::vector<std::vector<std::int64_t>> output_shapes = {};
  std::optional<std::int64_t> output_bytes = {};
  // Memory in the counting call; empty where it was not measured.
  std::optional<std::int64_t> peak_memory = {};  // bytes above what was allocated before, of the call that had most
  std::optional<std::int64_t> kept_memory = {};  // bytes that all forward calls left allocated, without their outputs

  bool operator==(const Module&) const = default;
};

// A region by what was open around it: "outer/inner". It is the same wherever in the model it was opened, while a
// region's row stands below the module that opened it.
struct RegionPath {
  RegionId parent = kNoRegion;  // the region around it; comes before it
  std::string name = {};
  std::int64_t calls = 0;                  // how often it was opened; inside itself it is open already
  std::vector<std::int64_t> wall_ns = {};  // from its opening to its end, for each timed run; empty: not known

  bool operator==(const RegionPath&) const = default;
};

struct Tree {
  std::vector<Module> modules = {};      // the first three are kModel, kOutside, kOptimizer; parents before children
  std::vector<RegionPath> regions = {};  // by id, from 1 on; outer ones before those inside

  bool operator==(const Tree&) const = default;
};

// Returns whether the module is `above` or one of those below it.
inline bool is_within(ModuleId module, ModuleId above, const std::vector<Module>& modules) {
  while (module >= 0 && module != above) module = modules[index_of(module)].parent;
  return module == above;
}

}  // namespace roofprof
