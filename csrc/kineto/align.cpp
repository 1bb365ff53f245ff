#include "kineto/align.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "core/phrases.h"
#include "core/shapes.h"
#include "kineto/recorded_arguments.h"

namespace roofprof::kineto {
namespace {

// The number of sizes that a sentence names.
constexpr std::size_t kSizesNamed = 6;

std::vector<std::vector<std::int32_t>> calls_inside(const std::vector<ModuleCall>& calls) {
  std::vector<std::vector<std::int32_t>> inside(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].around != kNone) inside[at(calls[i].around)].push_back(static_cast<std::int32_t>(i));
  }
  return inside;
}

std::string name_of(const Module& module) { return module.path.empty() ? "the model" : module.path; }

std::vector<std::string> texts_of(const std::vector<Shape>& shapes) {
  std::vector<std::string> texts;
  for (const auto& shape : shapes) texts.push_back(shape_text(shape));
  return texts;
}

std::vector<Shape> without_scalars(std::vector<Shape> shapes) {
  std::erase_if(shapes, [](const auto& shape) { return shape.empty(); });
  return shapes;
}

// Returns the sizes that a product reads of a transposed parameter.
Shape transposed(Shape sizes) {
  if (sizes.size() == 2) std::swap(sizes[0], sizes[1]);
  return sizes;
}

// Returns whether the sizes differ in more than the first one.
bool differ_behind_first(Shape a, Shape b) {
  for (auto* sizes : {&a, &b}) {
    if (!sizes->empty()) sizes->erase(sizes->begin());
  }
  return a != b;
}

// Returns the tensors that a recorded call takes.
struct Taken {
  bool all_known = false;  // the trace has the sizes of all of them
  std::vector<Shape> sizes;
};

Taken taken_by(const RecordedCall& call) {
  Taken taken;
  if (!call.described) return taken;
  taken.all_known = true;
  for (const auto& argument : arguments_of(call)) {
    const bool is_list = argument.kind == RecordedArgument::Kind::tensor_list;
    taken.all_known = taken.all_known && !(is_list && argument.tensors.empty());
    for (const auto& tensor : argument.tensors) taken.sizes.push_back(tensor.sizes);
  }
  return taken;
}

class Comparison {
 public:
  Comparison(const CalledInstances& trace, const std::vector<RecordedCall>& recorded, const CalledModel& model)
      : trace_(trace),
        recorded_(recorded),
        model_(model),
        taken_(recorded.size()),
        in_trace_(calls_inside(trace.calls)),
        in_model_(calls_inside(model.calls)),
        inputs_(without_scalars(model.modules[kModel].input_shapes)) {}

  std::variant<Alignment, std::string> run() {
    if (model_.calls.empty()) return "the model called no module";
    const auto& type = model_.modules[at(model_.calls[0].module)].type;
    std::string difference;
    std::vector<std::pair<std::int32_t, Alignment>> whole;
    std::optional<std::int32_t> part;  // a call that fits, and is inside of others' forward
    for (std::size_t i = 0; i < trace_.calls.size(); ++i) {
      const auto root = static_cast<std::int32_t>(i);
      if (trace_.types[at(trace_.calls[i].module)] != type) continue;
      Alignment found;
      const auto wrong = difference_at(root, found);
      if (!wrong.empty()) {
        if (difference.empty()) difference = wrong;
      } else if (caller_of_others(root) == kNone) {
        whole.emplace_back(root, std::move(found));
      } else if (!part) {
        part = root;
      }
    }
    if (!whole.empty()) return merged(whole);
    if (part) {
      return "it is a part of what was recorded: " + name_at(*part) + " is called in " +
             name_at(caller_of_others(*part)) + ", which calls other modules too";
    }
    if (!difference.empty()) return difference;
    return "the trace has no call of a " + type + outermost();
  }

 private:
  const std::string& name_at(std::int32_t call) const { return trace_.names[at(trace_.calls[at(call)].module)]; }

  ModuleId first_place(ModuleId module) const {
    const auto first = model_.modules[index_of(module)].same_as;
    return first < 0 ? module : first;
  }

  const Taken& taken(std::int32_t call) {
    auto& known = taken_[at(call)];
    if (!known) known = taken_by(recorded_[at(call)]);
    return *known;
  }

  // Returns the call around this one that also calls other modules; kNone: only wrappers are around it.
  std::int32_t caller_of_others(std::int32_t call) const {
    for (auto around = trace_.calls[at(call)].around; around != kNone; around = trace_.calls[at(around)].around) {
      for (const auto inside : in_trace_[at(around)]) {
        if (trace_.calls[at(inside)].module != trace_.calls[at(call)].module) return around;
      }
      call = around;
    }
    return kNone;
  }

  // An instance has the same module in every call.
  std::variant<Alignment, std::string> merged(const std::vector<std::pair<std::int32_t, Alignment>>& fits) const {
    Alignment all;
    std::unordered_map<ModuleId, std::int32_t> instances;  // by the module's first place
    for (const auto& [root, found] : fits) {
      std::vector<std::pair<std::int32_t, ModuleId>> in_order(found.begin(), found.end());
      std::ranges::sort(in_order, {}, [](const auto& pair) { return std::pair(pair.second, pair.first); });
      for (const auto& [instance, module] : in_order) {
        const auto& other = trace_.names[at(instances.try_emplace(first_place(module), instance).first->second)];
        const auto& name = trace_.names[at(instance)];
        if (other != name) {
          const auto& path = model_.modules[index_of(module)].path;
          return std::min(other, name) + " and " + std::max(other, name) + " of the trace both fit " +
                 (path.empty() ? "the model" : "where the model calls " + path) + ", and cannot be distinguished";
        }
        if (first_place(all.try_emplace(instance, module).first->second) != first_place(module)) {
          return name + " of the trace fits at several places of the model";
        }
      }
    }
    return all;
  }

  std::string outermost() const {
    std::vector<std::string> names;
    for (const auto& call : trace_.calls) {
      const auto& name = trace_.names[at(call.module)];
      if (call.around == kNone && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    return names.empty() ? "" : ", but of " + listed(names, kNamed);
  }

  // Returns whether ops of the call, or of calls inside it, take tensors of the sizes of each of the model's inputs.
  bool has_inputs_of_model(std::int32_t root) {
    if (inputs_.empty()) return false;
    std::vector<bool> found(inputs_.size());
    std::vector<std::int32_t> pending = {root};
    while (!pending.empty()) {
      const auto call = pending.back();
      pending.pop_back();
      for (const auto op : trace_.calls[at(call)].ops) {
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
          found[i] = found[i] || std::ranges::find(taken(op).sizes, inputs_[i]) != taken(op).sizes.end();
        }
      }
      pending.insert(pending.end(), in_trace_[at(call)].begin(), in_trace_[at(call)].end());
    }
    return std::ranges::find(found, false) == found.end();
  }

  // Compares the calls inside of `root` with those of the model. Returns the first difference; empty if they fit.
  std::string difference_at(std::int32_t root, Alignment& found) {
    has_inputs_ = has_inputs_of_model(root);
    std::unordered_map<ModuleId, std::int32_t> instances;  // by the module's first place
    std::vector<std::pair<std::int32_t, std::int32_t>> pending = {{root, 0}};
    while (!pending.empty()) {
      const auto [recorded, expected] = pending.back();
      pending.pop_back();
      const auto place = model_.calls[at(expected)].module;
      const auto& module = model_.modules[index_of(place)];
      const auto instance = trace_.calls[at(recorded)].module;
      if (trace_.types[at(instance)] != module.type) {
        return "where the model calls " + name_of(module) + " (" + module.type + "), the trace has a " +
               trace_.types[at(instance)];
      }
      const auto known = found.try_emplace(instance, place).first->second;
      if (first_place(known) != first_place(place)) {
        return "the trace calls one module where the model calls " + name_of(model_.modules[index_of(known)]) +
               " and " + name_of(module);
      }
      if (instances.try_emplace(first_place(place), instance).first->second != instance) {
        return "the trace calls two modules where the model calls " + name_of(module) + " twice";
      }
      const auto& below_recorded = in_trace_[at(recorded)];
      const auto& below_expected = in_model_[at(expected)];
      if (below_recorded.size() != below_expected.size()) {
        return name_of(module) + " calls " + counted(std::ssize(below_expected), "module") + " in the model and " +
               std::to_string(below_recorded.size()) + " in the trace";
      }
      if (auto other_sizes = difference_of_sizes(recorded, place); !other_sizes.empty()) return other_sizes;
      for (auto i = below_recorded.size(); i-- > 0;) pending.emplace_back(below_recorded[i], below_expected[i]);
    }
    return {};
  }

  // Checks that the trace's call reads the parameters that the module's ops read in the model. A trace without sizes,
  // or without those of tensors in lists, passes.
  std::string difference_of_sizes(std::int32_t call, ModuleId place) {
    const auto reads = model_.reads.find(first_place(place));
    if (reads == model_.reads.end()) return {};
    std::vector<Shape> sizes;
    for (const auto op : trace_.calls[at(call)].ops) {
      if (!taken(op).all_known) return {};
      for (const auto& one : taken(op).sizes) {
        if (std::ranges::find(sizes, one) == sizes.end()) sizes.push_back(one);
      }
    }
    if (sizes.empty()) return {};
    const auto& module = model_.modules[index_of(place)];
    const auto where = [&] { return name_at(call) + " of the trace"; };
    for (const auto& parameter : reads->second.parameters) {
      if (std::ranges::find(sizes, parameter) != sizes.end()) continue;
      if (std::ranges::find(sizes, transposed(parameter)) != sizes.end()) continue;
      return name_of(module) + " (" + module.type + ") has a parameter of " + shape_text(parameter) +
             " in the model, and the ops of " + where() + " take none, but " + listed(texts_of(sizes), kSizesNamed);
    }
    const auto& expected = reads->second.taken;
    for (const auto op : trace_.calls[at(call)].ops) {
      if (expected.empty() || recorded_[at(op)].op != reads->second.op) continue;
      const auto& there = taken(op).sizes;
      const bool fits =
          std::ranges::equal(expected, there, [](const auto& one, const auto& other) { return !one || *one == other; });
      const auto& of_call = reads->second.of_call;
      const bool like_inputs =
          !fits || !has_inputs_ || std::ranges::equal(of_call, there, std::not_fn(differ_behind_first));
      if (fits && like_inputs) continue;
      std::vector<std::string> shown_sizes;
      for (const auto& one : expected) shown_sizes.push_back(one ? shape_text(*one) : "any");
      return name_of(module) + " (" + module.type + ") calls " + reads->second.op + " of " +
             listed(fits ? texts_of(of_call) : shown_sizes) + " in the model, and " + where() + " of " +
             listed(texts_of(there)) +
             (fits ? ", though both got inputs of " + listed(texts_of(inputs_), kSizesNamed) : "");
    }
    return {};
  }

  const CalledInstances& trace_;
  const std::vector<RecordedCall>& recorded_;
  const CalledModel& model_;
  std::vector<std::optional<Taken>> taken_;  // by recorded call
  std::vector<std::vector<std::int32_t>> in_trace_;
  std::vector<std::vector<std::int32_t>> in_model_;
  const std::vector<Shape> inputs_;  // sizes of the tensors that the model was called with, scalars left out
  bool has_inputs_ = false;          // the trace's call that is compared got tensors of the sizes of the model's inputs
};

}  // namespace

std::variant<Alignment, std::string> aligned(const CalledInstances& trace, const std::vector<RecordedCall>& recorded,
                                             const CalledModel& model) {
  return Comparison(trace, recorded, model).run();
}

}  // namespace roofprof::kineto
