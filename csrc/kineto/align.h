#pragma once
// The calls of a trace beside those of the model that was recorded, so that instances get the names of attributes.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/profile_data.h"
#include "kineto/trace.h"

namespace roofprof::kineto {

// A call of a module; calls come in order of their begin, those around others first.
struct ModuleCall {
  std::int32_t module = 0;        // a number of the module, or of the instance in a trace
  std::int32_t around = kNone;    // index of the call that it is in
  std::vector<std::int32_t> ops;  // in a trace: those that no module inside called; indices into `recorded`
};

// What ops of a module read of its parameters in a call of its own, as sizes: "32x16".
struct ModuleReads {
  std::vector<std::string> parameters;
  // Of a module that does all its work in calls of one operator: that, and what it takes; "": any sizes.
  std::string op;
  std::vector<std::string> taken;
};

// The model that was recorded, and the calls of one forward.
struct CalledModel {
  std::vector<Module> modules;  // the first three are kModel, kOutside, kOptimizer; parents before children
  std::vector<ModuleCall> calls;
  std::unordered_map<ModuleId, ModuleReads> reads;  // of what was seen; by the module's first place
};

// The calls of modules in a trace.
struct CalledInstances {
  std::vector<ModuleCall> calls;
  std::vector<std::string> names;  // by instance: "Linear_3"
  std::vector<std::string> types;  // by instance: "Linear"
};

// By instance: its module.
using Alignment = std::unordered_map<std::int32_t, ModuleId>;

// A call of the model's class fits where the calls inside are those of the model, class by class, and where ops read
// parameters of the model's sizes; sizes of inputs may differ, as those of batches do. Each call that fits gives its
// instances their modules, one instance to one module. One sentence says why there is none: the first difference,
// several instances that fit, or a model that is a part of what was recorded.
std::variant<Alignment, std::string> aligned(const CalledInstances& trace, const std::vector<RecordedCall>& recorded,
                                             const CalledModel& model);

}  // namespace roofprof::kineto
