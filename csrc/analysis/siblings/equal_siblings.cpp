#include "analysis/siblings/equal_siblings.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/rows.h"

namespace roofprof {

namespace {

// ---- which subtrees are equal

// Facts in a row, as text that is equal where they are.
class FactText {
 public:
  void add(std::string_view text) {
    add(std::ssize(text));
    text_ += text;
  }
  void add(std::int64_t number) {
    text_ += std::to_string(number);
    text_ += ';';
  }
  void add(const std::vector<std::vector<std::int64_t>>& shapes) {
    add(std::ssize(shapes));
    for (const auto& shape : shapes) {
      add(std::ssize(shape));
      for (const std::int64_t size : shape) add(size);
    }
  }
  void add(const Work& work) {
    for (const std::int64_t count : {work.macs, work.causal_macs, work.read_bytes, work.write_bytes, work.updated_bytes,
                                     work.input_elements, work.output_elements}) {
      add(count);
    }
    for (const std::int64_t count : work.operations) add(count);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string facts_of_bucket(const OpBucket& bucket) {
  FactText facts;
  facts.add(bucket.op);
  facts.add(bucket.shapes);
  facts.add(static_cast<std::int64_t>(bucket.owner.phase));
  facts.add(static_cast<std::int64_t>(bucket.dtype));
  facts.add(static_cast<std::int64_t>(bucket.costed));
  facts.add(static_cast<std::int64_t>(bucket.time_ns.has_value()));
  facts.add(bucket.calls);
  facts.add(bucket.link_bytes);
  facts.add(bucket.work);
  return facts.take();
}

std::string facts_of_module(const Module& module, const ProfileData& data) {
  FactText facts;
  facts.add(module.type);
  for (const bool fact : {module.has_forward, module.calls_visible, module.inferred, module.compiled_region >= 0,
                          module.output_bytes.has_value()}) {
    facts.add(static_cast<std::int64_t>(fact));
  }
  for (const std::int64_t count : {module.params, module.trainable_params, module.param_bytes, module.buffer_bytes,
                                   module.output_bytes.value_or(0)}) {
    facts.add(count);
  }
  facts.add(module.input_shapes);
  facts.add(module.output_shapes);
  const auto unobserved = data.unobserved.find(module.path);
  facts.add(unobserved == data.unobserved.end() ? 0 : unobserved->second);
  return facts.take();
}

using Children = std::vector<std::vector<ModuleId>>;

Children children_of(const ProfileData& data) {
  const auto exists = existing_rows(data);
  Children children(data.modules.size());
  for (std::size_t id = 0; id < data.modules.size(); ++id) {
    const ModuleId parent = data.modules[id].parent;
    if (parent >= 0 && exists[id]) children[index_of(parent)].push_back(static_cast<ModuleId>(id));
  }
  return children;
}

// The name without the number at its end.
std::string_view stem_of(std::string_view name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); }

// A number for each module, which modules with equal subtrees share. Their own names do not matter, those below do.
std::vector<std::size_t> subtree_kinds(const ProfileData& data, const Children& children) {
  std::vector<std::vector<std::string>> facts(data.modules.size());
  for (const auto& bucket : data.ops) facts[index_of(bucket.owner.module)].push_back(facts_of_bucket(bucket));
  for (const auto& time : data.times) {
    FactText text;
    text.add("time");
    text.add(static_cast<std::int64_t>(time.owner.phase));
    for (const std::int64_t fact : {time.calls, std::ssize(time.self_ns), std::ssize(time.host_self_ns)})
      text.add(fact);
    facts[index_of(time.owner.module)].push_back(text.take());
  }
  for (const auto& counters : data.module_counters) {
    FactText text;
    text.add("counters");
    text.add(static_cast<std::int64_t>(counters.owner.phase));
    facts[index_of(counters.owner.module)].push_back(text.take());
  }
  std::map<std::string, std::size_t> known;
  std::vector<std::size_t> kinds(data.modules.size());
  for (std::size_t id = data.modules.size(); id-- > 0;) {  // children before parents
    std::ranges::sort(facts[id]);
    FactText text;
    text.add(facts_of_module(data.modules[id], data));
    for (const auto& fact : facts[id]) text.add(fact);
    text.add("below");
    for (const ModuleId child : children[id]) {
      // Names of traces have the number of the instance, which each has for itself.
      text.add(!data.imported ? own_name(data, child) : stem_of(own_name(data, child)));
      text.add(static_cast<std::int64_t>(kinds[index_of(child)]));
    }
    kinds[id] = known.try_emplace(text.take(), known.size()).first->second;
  }
  return kinds;
}

// ---- which of them are a group

struct NumberedName {
  std::string_view stem;
  int number = 0;
};

// "conv" and 12 of "conv12"; empty for a name without a number, or with one that is not as numbers are written.
std::optional<NumberedName> numbered(std::string_view name) {
  constexpr std::size_t kMostDigits = 9;
  const std::size_t digits = name.size() - stem_of(name).size();
  const std::string_view number = name.substr(name.size() - digits);
  if (digits == 0 || digits > kMostDigits || (digits > 1 && number.front() == '0')) return std::nullopt;
  NumberedName result{name.substr(0, name.size() - digits)};
  std::from_chars(number.data(), number.data() + number.size(), result.number);
  return result;
}

std::vector<EqualSiblings> groups_below(const ProfileData& data, ModuleId parent, const Children& children,
                                        const std::vector<std::size_t>& kinds) {
  struct Open {
    EqualSiblings group;
    std::size_t last = 0;  // position of its last member among the children
  };
  std::map<std::pair<std::string_view, std::size_t>, Open> open;
  std::vector<EqualSiblings> groups;
  const auto close = [&](EqualSiblings group) {
    if (group.size() >= kFewestFolded) groups.push_back(std::move(group));
  };
  const auto& siblings = children[index_of(parent)];
  for (std::size_t at = 0; at < siblings.size(); ++at) {
    const auto id = index_of(siblings[at]);
    const auto name = numbered(own_name(data, siblings[at]));
    if (!name) continue;
    auto& [group, last] = open[{name->stem, kinds[id]}];
    const bool is_step = children[id].empty();
    if (is_step && !group.empty() && at != last + 1) close(std::exchange(group, {}));
    group.push_back(siblings[at]);
    last = at;
  }
  for (auto& [key, last] : open) close(std::move(last.group));
  return groups;
}

}  // namespace

std::string_view own_name(const ProfileData& data, ModuleId id) {
  const std::string_view path = data.modules[index_of(id)].path;
  const ModuleId parent = data.modules[index_of(id)].parent;
  if (parent < 0) return path;
  const std::string& above = data.modules[index_of(parent)].path;
  return !above.empty() && path.starts_with(above + ".") ? path.substr(above.size() + 1) : path;
}

std::string name_of_group(const ProfileData& data, const EqualSiblings& group) {
  std::vector<std::pair<int, int>> ranges;
  for (const ModuleId id : group) {
    const int number = numbered(own_name(data, id)).value().number;
    if (!ranges.empty() && ranges.back().second + 1 == number) {
      ranges.back().second = number;
    } else {
      ranges.emplace_back(number, number);
    }
  }
  constexpr std::size_t kMostPieces = 3;
  std::string name(numbered(own_name(data, group.front())).value().stem);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0) name += ", ";
    if (ranges.size() > kMostPieces && i == 2) {
      name += "..., ";
      i = ranges.size() - 1;
    }
    name += std::to_string(ranges[i].first);
    if (ranges[i].second > ranges[i].first) name += "-" + std::to_string(ranges[i].second);
  }
  return name;
}

FoldingPlan plan_folding(const ProfileData& data) {
  const Children children = children_of(data);
  const auto kinds = subtree_kinds(data, children);
  FoldingPlan plan;
  plan.into.resize(data.modules.size());
  std::iota(plan.into.begin(), plan.into.end(), ModuleId{0});
  for (std::size_t id = 0; id < data.modules.size(); ++id) {
    const auto parent = static_cast<ModuleId>(id);
    if (plan.into[id] != parent) continue;
    for (auto& group : groups_below(data, parent, children, kinds)) {
      // Equal subtrees are walked side by side.
      for (std::size_t i = 1; i < group.size(); ++i) {
        std::vector<std::pair<ModuleId, ModuleId>> pending = {{group[i], group.front()}};
        while (!pending.empty()) {
          const auto [from, to] = pending.back();
          pending.pop_back();
          plan.into[index_of(from)] = to;
          const auto& below_from = children[index_of(from)];
          const auto& below_to = children[index_of(to)];
          for (std::size_t c = 0; c < below_from.size(); ++c) pending.emplace_back(below_from[c], below_to[c]);
        }
      }
      const ModuleId first = group.front();
      plan.groups.emplace(first, std::move(group));
    }
  }
  // What a module was folded into may have been folded after it: inner groups come after outer ones.
  for (auto& into : plan.into) {
    while (plan.into[index_of(into)] != into) into = plan.into[index_of(into)];
  }
  return plan;
}

}  // namespace roofprof
