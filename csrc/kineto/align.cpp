#include "kineto/align.h"

#include <cstddef>
#include <utility>

#include "core/phrases.h"

namespace roofprof::kineto {
namespace {

std::vector<std::vector<std::int32_t>> calls_inside(const std::vector<ModuleCall>& calls) {
  std::vector<std::vector<std::int32_t>> inside(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].around != kNone) inside[at(calls[i].around)].push_back(static_cast<std::int32_t>(i));
  }
  return inside;
}

std::string name_of(const Module& module) { return module.path.empty() ? "the model" : module.path; }

ModuleId first_place(ModuleId module, const CalledModel& model) {
  const auto first = model.modules[index_of(module)].same_as;
  return first < 0 ? module : first;
}

}  // namespace

std::variant<Alignment, std::string> aligned(const std::vector<ModuleCall>& calls,
                                             const std::vector<std::string>& types, const CalledModel& model) {
  if (model.calls.empty()) return "the model called no module";
  const auto in_trace = calls_inside(calls);
  const auto in_model = calls_inside(model.calls);
  const auto type_of_model = [&](std::int32_t call) -> const std::string& {
    return model.modules[at(model.calls[at(call)].module)].type;
  };
  std::string difference = "the trace has no call of a " + type_of_model(0);
  Alignment all;
  bool differs = false;
  bool any = false;
  for (std::size_t root = 0; root < calls.size(); ++root) {
    if (types[at(calls[root].module)] != type_of_model(0)) continue;
    Alignment found;
    std::unordered_map<ModuleId, std::int32_t> instances;  // by the module's first place
    std::string wrong;
    std::vector<std::pair<std::int32_t, std::int32_t>> pending = {{static_cast<std::int32_t>(root), 0}};
    while (!pending.empty() && wrong.empty()) {
      const auto [recorded, expected] = pending.back();
      pending.pop_back();
      const auto& module = model.modules[at(model.calls[at(expected)].module)];
      const auto& type = types[at(calls[at(recorded)].module)];
      if (type != module.type) {
        wrong = "where the model calls " + name_of(module) + " (" + module.type + "), the trace has a " + type;
        break;
      }
      const auto instance = calls[at(recorded)].module;
      const auto place = model.calls[at(expected)].module;
      const auto known = found.try_emplace(instance, place).first->second;
      if (first_place(known, model) != first_place(place, model)) {
        wrong = "the trace calls one module where the model calls " + name_of(model.modules[at(known)]) + " and " +
                name_of(module);
        break;
      }
      if (instances.try_emplace(first_place(place, model), instance).first->second != instance) {
        wrong = "the trace calls two modules where the model calls " + name_of(module) + " twice";
        break;
      }
      const auto& below_recorded = in_trace[at(recorded)];
      const auto& below_expected = in_model[at(expected)];
      if (below_recorded.size() != below_expected.size()) {
        wrong = name_of(module) + " calls " + counted(std::ssize(below_expected), "module") + " in the model and " +
                std::to_string(below_recorded.size()) + " in the trace";
        break;
      }
      for (auto i = below_recorded.size(); i-- > 0;) pending.emplace_back(below_recorded[i], below_expected[i]);
    }
    if (!wrong.empty()) {
      if (!any && !differs) difference = wrong;
      differs = true;
      continue;
    }
    any = true;
    all.merge(found);
  }
  if (any) return all;
  return difference;
}

}  // namespace roofprof::kineto
