#pragma once
// Matches the calls of a trace with those of the model that was recorded, so that the trace's instances of modules get
// the names of the model's attributes.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/profile.h"
#include "core/shapes.h"
#include "kineto/trace.h"

namespace roofprof::kineto {

// A call of a module. Calls are in the order in which they begin, outer calls before those inside them.
struct ModuleCall {
  std::int32_t module = 0;        // the module's number, or in a trace the instance's
  std::int32_t around = kNone;    // index of the call that it is in
  std::vector<std::int32_t> ops;  // in a trace: the ops that no module inside called, as indices into `recorded`
};

// Sizes of the parameters that a module's ops read when the module is called.
struct ModuleReads {
  std::vector<Shape> parameters;
  // Set for a module that does all its work in calls of one operator: the operator, and the sizes that it takes
  // (nothing: any).
  std::string op;
  std::vector<std::optional<Shape>> taken;
  std::vector<Shape> of_call = {};  // the same sizes, with those of inputs that are not parameters
};

// The model that was recorded, and the calls of one forward.
struct CalledModel {
  std::vector<Module> modules;  // the first three are kModel, kOutside, kOptimizer; parents before children
  std::vector<ModuleCall> calls;
  std::unordered_map<ModuleId, ModuleReads> reads;  // by the first place of each module that was seen
};

// The calls of modules in a trace.
struct CalledInstances {
  std::vector<ModuleCall> calls;
  std::vector<std::string> names;  // by instance: "Linear_3"
  std::vector<std::string> types;  // by instance: "Linear"
};

// Maps an instance to its module.
using Alignment = std::unordered_map<std::int32_t, ModuleId>;

// Finds the modules of the trace's instances. A call of the model's class fits if the calls inside it are those of the
// model, class by class, and if ops read parameters of the model's sizes; sizes of inputs may differ, as batches do.
// Where those of the model's inputs are the same in both, so must be what its modules take, but for the first size,
// which data may decide (the tokens of an expert). Each call that fits gives its instances their modules, one instance
// to one module. If none fits, one sentence says why: the first difference, several instances that fit, or a model that
// is a part of what was recorded.
std::variant<Alignment, std::string> aligned(const CalledInstances& trace, const std::vector<RecordedCall>& recorded,
                                             const CalledModel& model);

}  // namespace roofprof::kineto
