#include "analysis/advice/advice.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/advice/advice_rules.h"
#include "analysis/advice/fusion.h"
#include "analysis/derivations.h"
#include "analysis/device_coverage.h"
#include "analysis/hotspots.h"
#include "analysis/siblings/siblings.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

using ModuleAndOp = std::pair<std::string_view, std::string_view>;

struct Held {
  AdviceCase where;
  AdviceReason reason;
  std::vector<std::string> members;  // paths of the modules that it is about
};

std::int64_t weight_of(const OpBucket& bucket) { return bucket.time_ns.value_or(bucket.work.bytes()); }

std::map<ModuleAndOp, const OpBucket*> largest_buckets(const ProfileData& data) {
  std::map<ModuleAndOp, const OpBucket*> largest;
  for (const auto& bucket : data.ops) {
    if (!bucket.costed) continue;
    const OpBucket*& known = largest[{data.modules[index_of(bucket.owner.module)].path, bucket.op}];
    if (known == nullptr || weight_of(bucket) > weight_of(*known)) known = &bucket;
  }
  return largest;
}

std::map<ModuleAndOp, const KernelBucket*> older_kernels(const ProfileData& data) {
  std::map<ModuleAndOp, const KernelBucket*> older;
  for (const auto& kernel : data.kernels) {
    if (!is_for_older_generation(kernel, data)) continue;
    const KernelBucket*& known = older[{data.modules[index_of(kernel.owner.module)].path, kernel.op}];
    if (known == nullptr || kernel.total_ns > known->total_ns) known = &kernel;
  }
  return older;
}

// Returns whether the row is the model's. Code around the model is the user's, and few rules apply to it.
bool is_of_model(const GroupRow& row) { return !row.module->starts_with('('); }

// Returns a row for the device as a whole if it waited; its idle time belongs to no module.
std::optional<GroupRow> idle_device(const Figures& total) {
  if (!total.idle_ns || *total.idle_ns <= 0) return std::nullopt;
  GroupRow row;
  row.module = "";
  row.op = std::string(kIdleDevice);
  row.time_ns = row.wasted_time_ns = total.idle_ns;
  row.utilization = total.utilization;
  return row;
}

Advice describe(const AdviceRule& rule, std::vector<Held> held) {
  std::ranges::stable_sort(held, std::greater(), [](const Held& h) { return h.reason.at_stake_ns; });
  const Held& largest = held.front();
  Advice advice;
  advice.rule = rule.name;
  advice.module = *largest.where.ops->module;
  std::set<std::string> seen_ops;
  std::set<std::string> seen_modules;
  for (const auto& [where, reason, members] : held) {
    if (seen_ops.insert(*where.ops->op).second) advice.ops.push_back(*where.ops->op);
    if (seen_modules.insert(*where.ops->module).second)
      advice.modules.insert(advice.modules.end(), members.begin(), members.end());
  }
  const auto others = std::ssize(advice.modules) - std::ssize(largest.members);
  std::string subject = rule.about.empty() ? listed(advice.ops, kNamed) : std::string(rule.about);
  if (rule.names_modules) {
    subject += " in " + display_path(advice.module);
    if (largest.members.size() > 1) subject += " x" + std::to_string(largest.members.size());
    if (others > 0) subject += " and " + counted(others, "more module", "more modules");
  }

  double taken_ns = 0;
  for (const auto& one : held) taken_ns += static_cast<double>(one.where.ops->time_ns.value_or(0));
  advice.figures = largest.reason.figures;
  if (largest.where.ops->op != kIdleDevice) {  // whose time is none of the total's
    const auto all_ns = static_cast<double>(largest.where.total->time_ns.value_or(0));
    advice.figures.emplace_back("percent_of_time", 100 * taken_ns / all_ns);
    subject += " (" + percent(taken_ns / all_ns) + " of the time)";
  }
  advice.text = subject + ": " + rule.sentence(largest.where, advice.figures);
  advice.source = rule.source;
  return advice;
}

}  // namespace

std::vector<Advice> advice_on(const ProfileData& data, const Folding& folding, const std::vector<GroupRow>& hotspots,
                              const std::vector<FoldedRow>& lines, const std::vector<RooflineRow>& rows,
                              const Figures& total) {
  record_derivation("advice", data);
  if (!total.time_ns || *total.time_ns <= 0 || data.ceilings.empty()) return {};
  const ProfileData& folded = *folding.data;
  std::vector<GroupRow> cases = hotspots;
  if (auto idle = idle_device(total)) cases.push_back(std::move(*idle));
  const auto buckets = largest_buckets(folded);
  const auto older = older_kernels(folded);
  std::map<std::string_view, std::vector<std::string>> members;
  for (std::size_t id = 0; id < folding.modules.size(); ++id) {
    auto& paths = members[folded.modules[id].path];
    for (const ModuleId member : folding.modules[id].members) paths.push_back(data.modules[index_of(member)].path);
  }
  const auto found_in = [](const auto& map, const GroupRow& row) {
    const auto found = map.find(ModuleAndOp(*row.module, *row.op));
    return found == map.end() ? nullptr : found->second;
  };

  // Each case gets one sentence, from the first rule that holds for it.
  std::map<const AdviceRule*, std::vector<Held>> held;
  for (const auto& row : cases) {
    const AdviceCase where{&folded, &row, found_in(buckets, row), found_in(older, row), &total};
    for (const auto& rule : advice_rules()) {
      if (!rule.around_model && !is_of_model(row)) continue;
      if (auto reason = rule.reason(where)) {
        held[&rule].push_back({where, std::move(*reason), members[*row.module]});
        break;
      }
    }
  }
  std::vector<std::pair<std::int64_t, Advice>> ranked;
  for (auto& [rule, cases_of_rule] : held) {
    std::int64_t at_stake_ns = 0;
    for (const auto& one : cases_of_rule) at_stake_ns = saturating_add(at_stake_ns, one.reason.at_stake_ns);
    if (static_cast<double>(at_stake_ns) < rule->least_share * static_cast<double>(*total.time_ns)) continue;
    ranked.emplace_back(at_stake_ns, describe(*rule, std::move(cases_of_rule)));
  }
  if (auto fusion = advice_on_fusion(data, lines, rows, total)) ranked.push_back(std::move(*fusion));
  std::ranges::stable_sort(ranked, std::greater(), [](const auto& one) { return one.first; });
  std::vector<Advice> advice;
  advice.reserve(ranked.size());
  for (auto& one : ranked) advice.push_back(std::move(one.second));
  return advice;
}

}  // namespace roofprof
