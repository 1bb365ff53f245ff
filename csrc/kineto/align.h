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
  std::int32_t module = 0;      // a number of the module, or of the instance in a trace
  std::int32_t around = kNone;  // index of the call that it is in
};

// The model that was recorded, and the calls of one forward.
struct CalledModel {
  std::vector<Module> modules;  // the first three are kModel, kOutside, kOptimizer; parents before children
  std::vector<ModuleCall> calls;
};

// By instance: its module.
using Alignment = std::unordered_map<std::int32_t, ModuleId>;

// `types`: the class of each instance. Every call in the trace of the model's class whose calls inside are those of the
// model, class by class, gives its instances their modules. Where there is none: one sentence on the first difference.
std::variant<Alignment, std::string> aligned(const std::vector<ModuleCall>& calls,
                                             const std::vector<std::string>& types, const CalledModel& model);

}  // namespace roofprof::kineto
