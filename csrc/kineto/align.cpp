#include "kineto/align.h"

#include <cstddef>
#include <utility>

#include "values/phrases.h"

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
  bool any = false;
  for (std::size_t root = 0; root < calls.size(); ++root) {
    if (types[at(calls[root].module)] != type_of_model(0)) continue;
    Alignment found;
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
      const auto [known, fresh] = found.try_emplace(calls[at(recorded)].module, model.calls[at(expected)].module);
      const auto& first = model.modules[at(known->second)];
      if (!fresh && first.path != module.path && first.same_as != model.calls[at(expected)].module) {
        wrong = "the trace calls one module where the model calls " + name_of(first) + " and " + name_of(module);
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
      if (!any) difference = wrong;
      continue;
    }
    any = true;
    all.merge(found);
  }
  if (any) return all;
  return difference;
}

}  // namespace roofprof::kineto
