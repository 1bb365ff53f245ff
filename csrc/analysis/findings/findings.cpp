#include "analysis/findings/findings.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "analysis/device_coverage.h"
#include "analysis/findings/finding_case.h"
#include "analysis/findings/finding_rules.h"
#include "analysis/findings/of_modules.h"
#include "analysis/gainable_idle.h"
#include "analysis/hotspots.h"
#include "analysis/siblings/siblings.h"
#include "core/median.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

using ModuleAndOp = std::pair<std::string_view, std::string_view>;

// A case that a rule holds for.
struct Held {
  const FindingRule* rule;
  FindingCase where;
  Ruling ruling;
  std::vector<std::string> members;  // paths of the modules that it is about
};

std::int64_t weight_of(const OpBucket& bucket) { return bucket.time_ns.value_or(bucket.work.bytes()); }

std::map<ModuleAndOp, const OpBucket*> largest_buckets(const Profile& data) {
  std::map<ModuleAndOp, const OpBucket*> largest;
  for (const auto& bucket : data.counts.ops) {
    if (!bucket.costed) continue;
    const OpBucket*& known = largest[{data.tree.modules[index_of(bucket.owner.module)].path, bucket.op}];
    if (known == nullptr || weight_of(bucket) > weight_of(*known)) known = &bucket;
  }
  return largest;
}

// Returns whether cuDNN's kernel brings the channels last for a convolution, or first again.
bool reorders_channels(std::string_view name) {
  return name.find("nchwToNhwc") != std::string_view::npos || name.find("nhwcToNchw") != std::string_view::npos;
}

std::map<ModuleAndOp, KernelsOfOp> kernels_of_ops(const Profile& data) {
  std::map<ModuleAndOp, KernelsOfOp> found;
  for (const auto& kernel : data.device->kernels) {
    auto& known = found[{data.tree.modules[index_of(kernel.owner.module)].path, kernel.op}];
    if (reorders_channels(kernel.name)) known.reordered_ns = saturating_add(known.reordered_ns, kernel.total_ns);
    if (is_for_older_generation(kernel, data) && (known.older == nullptr || kernel.total_ns > known.older->total_ns)) {
      known.older = &kernel;
    }
  }
  return found;
}

std::int64_t in_run(const std::vector<std::int64_t>& runs_ns, std::int64_t run) {
  return run < 0 || std::cmp_greater_equal(run, runs_ns.size()) ? 0 : runs_ns[static_cast<std::size_t>(run)];
}

std::map<std::string_view, CallsInModule> calls_inside_modules(const Profile& data) {
  constexpr std::array<std::string_view, 4> kReads = {"aten::_local_scalar_dense", "aten::item", "aten::is_nonzero",
                                                      "aten::nonzero"};
  std::map<std::string_view, CallsInModule> found;
  for (const auto& bucket : data.counts.ops) {
    auto& calls = found[data.tree.modules[index_of(bucket.owner.module)].path];
    calls.ops = saturating_add(calls.ops, bucket.calls);
    if (std::ranges::find(kReads, bucket.op) != kReads.end())
      calls.reads_on_host = saturating_add(calls.reads_on_host, bucket.calls);
  }
  for (const auto& time : data.times->modules) {
    const auto& module = data.tree.modules[index_of(time.owner.module)];
    auto& calls = found[module.path];
    const std::int64_t own_ns = in_run(time.self_ns, data.run.runs.chosen);
    calls.own_ns = saturating_add(calls.own_ns, own_ns);
    const auto usual_ns = static_cast<std::int64_t>(median(time.self_ns));
    calls.longer_ns = saturating_add(calls.longer_ns, std::max<std::int64_t>(own_ns - usual_ns, 0));
    if (time.owner.phase == Phase::forward) {
      calls.forwards = saturating_add(calls.forwards, time.calls);
    }
    if (module.parent >= 0) {
      auto& around = found[data.tree.modules[index_of(module.parent)].path];
      around.modules_inside = saturating_add(around.modules_inside, time.calls);
    }
  }
  return found;
}

// Returns whether the row is the model's. Code around the model is the user's, and few rules apply to it.
bool is_of_model(const GroupRow& row) { return !row.module->starts_with('('); }

// Returns a row for the device as a whole if it waited between launches; its idle time belongs to no module.
std::optional<GroupRow> idle_device(const Profile& data, const RooflineRow& total) {
  const auto idle_ns = gainable_idle_ns(data, total);
  if (idle_ns <= 0) return std::nullopt;
  GroupRow row;
  row.module = "";
  row.op = std::string(kIdleDevice);
  row.time_ns = row.wasted_time_ns = idle_ns;
  const auto busy_ns = static_cast<double>(total.busy_ns.value_or(0));
  row.utilization = 100 * busy_ns / (busy_ns + static_cast<double>(idle_ns));
  return row;
}

// Returns "features.3" of the modules in it and below it; "" where the model alone holds all of them.
std::string common_path(const std::vector<std::string>& paths) {
  std::string common = paths.empty() ? "" : paths.front();
  for (const auto& path : paths) {
    while (!common.empty() && path != common && !path.starts_with(common + ".")) {
      const auto dot = common.rfind('.');
      common.resize(dot == std::string::npos ? 0 : dot);
    }
  }
  return common;
}

// Returns an id that stays the same from run to run. It names an op only if there is just one: which of several are
// long enough may differ.
std::string id_of(const Finding& finding) {
  std::string id = finding.rule;
  if (const auto path = common_path(finding.modules); !path.empty()) id += "/" + path;
  if (finding.ops.size() == 1 && !finding.ops.front().starts_with('(')) id += "/" + finding.ops.front();
  return id;
}

// The map has a line of the user's code for each module's path: that of the module's forward, or of the nearest forward
// around it, past forwards of torch itself; none where that one's line is not known.
using Sources = std::map<std::string_view, std::string_view>;

Sources sources_of(const Profile& data) {
  Sources sources;
  for (const auto& module : data.tree.modules) {
    const bool is_users = module.has_forward && !module.forward_of_torch && module.type != kRegionType;
    const bool is_last = is_users || !module.source.empty() || module.parent < 0;
    sources.try_emplace(module.path,
                        is_last ? module.source : sources[data.tree.modules[index_of(module.parent)].path]);
  }
  return sources;
}

// Returns the line of the user's code: that of the modules' longest kernel of compiled code; else the forward that is
// around each of them, or around all of them.
std::optional<std::string> source_of(const Finding& finding, const Profile& data, const Sources& sources) {
  for (const auto& kernel : data.times->compiled_kernels) {
    const auto& path = data.tree.modules[index_of(kernel.owner.module)].path;
    if (!kernel.source.empty() && std::ranges::find(finding.modules, path) != finding.modules.end())
      return kernel.source;
  }
  const auto source_at = [&](std::string_view path) {
    const auto found = sources.find(path);
    return found == sources.end() ? std::string_view() : found->second;
  };
  std::set<std::string_view> each;
  for (const auto& path : finding.modules) each.insert(source_at(path));
  const auto source = each.size() == 1 ? *each.begin() : source_at(common_path(finding.modules));
  return source.empty() ? std::nullopt : std::optional<std::string>(source);
}

AllCalls sum_of(const std::vector<Held>& held) {
  AllCalls all;
  double bounded_ns = 0;  // of those with a lower bound
  double least_ns = 0;
  for (const auto& [rule, where, ruling, members] : held) {
    const auto time_ns = static_cast<double>(where.time_ns());
    all.time_ns += time_ns;
    all.calls += static_cast<double>(where.ops->calls);
    if (!where.ops->lower_bound_time_ns) continue;
    bounded_ns += time_ns;
    least_ns += static_cast<double>(*where.ops->lower_bound_time_ns);
  }
  all.percent_of_roof = bounded_ns > 0 ? 100 * least_ns / bounded_ns : held.front().where.of_roof();
  return all;
}

// Returns the finding of a rule on all these cases, which says what the rule says of the one with most at stake.
Finding describe(const FindingRule& rule, std::vector<Held> held, std::int64_t at_stake_ns, const Profile& data,
                 const RooflineRow& total) {
  std::ranges::stable_sort(held, std::greater(), [](const Held& h) { return h.ruling.at_stake_ns; });
  Held& largest = held.front();
  Finding finding;
  finding.rule = rule.name;
  finding.module = *largest.where.ops->module;
  finding.op = *largest.where.ops->op;
  finding.bound = to_string(largest.where.ops->bound);
  std::set<std::string> seen_ops;
  std::set<std::string> seen_modules;
  for (const auto& one : held) {
    if (seen_ops.insert(*one.where.ops->op).second) finding.ops.push_back(*one.where.ops->op);
    if (seen_modules.insert(*one.where.ops->module).second)
      finding.modules.insert(finding.modules.end(), one.members.begin(), one.members.end());
  }
  largest.where.all = sum_of(held);
  const Ruling ruling = largest.rule->holds(largest.where).value_or(largest.ruling);
  for (const Evidence& evidence : ruling.evidence) finding.evidence.emplace(evidence.name, evidence.value);
  std::string subject = rule.about.empty() ? listed(finding.ops, kNamed) : std::string(rule.about);
  if (rule.names_modules) subject += " in " + sentences::modules_text(finding, largest.members.size());
  if (largest.where.ops->op != kIdleDevice) {  // whose time is none of the total's
    const double taken_ns = largest.where.all.time_ns;
    const auto all_ns = static_cast<double>(largest.where.total->time_ns.value_or(0));
    finding.evidence.emplace("percent_of_time", 100 * taken_ns / all_ns);
    subject += " (" + percent(taken_ns / all_ns) + " of the time)";
  }
  finding.text = subject + ": " + ruling.text;
  finding.action = ruling.action;
  if (!ruling.try_it.empty()) finding.try_it = ruling.try_it;
  // The gain is that of the finding's own rule, even where the largest is a short call among time outside ops.
  const Ruling& gains = largest.rule == &rule ? ruling : std::ranges::find(held, &rule, &Held::rule)->ruling;
  finding.reference = gains.reference;
  complete(finding, gains.gain, at_stake_ns, data, total);
  return finding;
}

// Parts the cases of a rule: one finding for each op that takes enough by itself, where the rule wants that, and one
// for all others.
std::vector<std::vector<Held>> parts_of(const FindingRule& rule, std::vector<Held> held, double least_ns) {
  std::vector<std::vector<Held>> parts;
  std::map<std::string_view, std::int64_t> at_stake_ns;
  if (rule.each_op_alone) {
    for (const auto& one : held) at_stake_ns[*one.where.ops->op] += one.ruling.at_stake_ns;
  }
  for (const auto& of_op : at_stake_ns) {
    if (static_cast<double>(of_op.second) < least_ns) continue;
    const auto is_of_op = [&](const Held& one) { return *one.where.ops->op == of_op.first; };
    const auto others = std::stable_partition(held.begin(), held.end(), is_of_op);
    parts.emplace_back(std::make_move_iterator(held.begin()), std::make_move_iterator(others));
    held.erase(held.begin(), others);
  }
  if (!held.empty()) parts.push_back(std::move(held));
  return parts;
}

double middle_of(const Finding& finding) {
  return (static_cast<double>(finding.gain_low_ns) + static_cast<double>(finding.gain_high_ns)) / 2;
}

}  // namespace

std::vector<Finding> findings_on(const Profile& data, const Folding& folding, const std::vector<GroupRow>& ops,
                                 const std::vector<FoldedRow>& lines, const std::vector<RooflineRow>& rows,
                                 const RooflineRow& total) {
  if (!total.time_ns || *total.time_ns <= 0 || data.roofs.empty()) return {};
  const Profile& folded = *folding.data;
  std::vector<GroupRow> cases;
  std::ranges::copy_if(ops, std::back_inserter(cases), [](const GroupRow& row) { return row.time_ns.value_or(0) > 0; });
  if (auto idle = idle_device(data, total)) cases.push_back(std::move(*idle));
  const auto buckets = largest_buckets(folded);
  const auto kernels = kernels_of_ops(folded);
  const auto calls = calls_inside_modules(folded);
  const ProgramFacts program(folded);
  std::map<std::string_view, std::vector<std::string>> members;
  for (std::size_t id = 0; id < folding.modules.size(); ++id) {
    auto& paths = members[folded.tree.modules[id].path];
    for (const ModuleId member : folding.modules[id].members) paths.push_back(data.tree.modules[index_of(member)].path);
  }
  const auto found_in = []<class Key, class Value>(const std::map<Key, Value>& map, const Key& key) {
    const auto found = map.find(key);
    return found == map.end() ? Value{} : found->second;
  };
  std::vector<Finding> findings;
  std::set<std::string> unused;
  if (auto finding = finding_on_unused(data, rows, total)) {
    unused.insert(finding->modules.begin(), finding->modules.end());
    findings.push_back(std::move(*finding));
  }
  const auto is_unused = [&](const std::string& path) {
    return std::ranges::any_of(unused, [&](const auto& one) { return path == one || path.starts_with(one + "."); });
  };

  // Each case gets one sentence, from the first rule that holds for it.
  std::map<const FindingRule*, std::vector<Held>> held;
  TimeToCompile to_compile;
  for (const auto& row : cases) {
    if (!members[*row.module].empty() && is_unused(members[*row.module].front())) continue;
    const ModuleAndOp op(*row.module, *row.op);
    const FindingCase where{.data = &folded,
                            .program = &program,
                            .ops = &row,
                            .bucket = found_in(buckets, op),
                            .kernels = found_in(kernels, op),
                            .calls = found_in(calls, op.first),
                            .total = &total};
    const bool compiling_changes_it = is_of_model(row) && to_compile.add(where);
    for (const auto& rule : finding_rules()) {
      if (!rule.around_model && !is_of_model(row)) continue;
      if (auto ruling = rule.holds(where)) {
        if (compiling_changes_it) to_compile.cases.emplace(rule.name, *row.op);
        held[&rule].push_back({&rule, where, std::move(*ruling), members[*row.module]});
        break;
      }
    }
  }
  const auto rule_of = [&](std::string_view name) {
    return std::ranges::find(held, name, [](const auto& of_rule) { return of_rule.first->name; });
  };
  if (const auto outside = rule_of(kOutsideRule), brief = rule_of(kShortCalls);
      outside != held.end() && brief != held.end()) {
    std::ranges::move(brief->second, std::back_inserter(outside->second));
    held.erase(brief);
  }
  std::int64_t outside_ns = 0;  // of all ops, around the model, too
  for (const auto& row : cases) outside_ns += row.op == kOutsideOps ? *row.time_ns : 0;
  // Observing takes time outside of ops, which nothing can save: so much of each time there.
  const double observing_ns = cases::observing_share(data) * static_cast<double>(*total.time_ns);
  const double observing = outside_ns > 0 ? std::min(observing_ns / static_cast<double>(outside_ns), 1.0) : 0;
  // Without what interrupted the run that the rows come from: the time outside of ops is held against that.
  std::int64_t usual_ns = *total.time_ns;
  for (const auto& [_, in_module] : calls) usual_ns -= in_module.longer_ns;
  for (auto& [rule, cases_of_rule] : held) {
    const bool outside = rule->name == kOutsideRule || rule->name == kShortCalls;
    const std::int64_t all_ns = outside ? usual_ns : *total.time_ns;
    const double least_ns = rule->least_share * static_cast<double>(all_ns);
    for (auto& part : parts_of(*rule, std::move(cases_of_rule), least_ns)) {
      std::int64_t at_stake_ns = 0;
      for (const auto& one : part) {
        const double part_of_it = one.where.is_outside_ops() ? 1 - observing : 1;
        at_stake_ns = saturating_add(at_stake_ns, cases::part_of(one.ruling.at_stake_ns, part_of_it));
      }
      if (static_cast<double>(at_stake_ns) < least_ns) continue;
      findings.push_back(describe(*rule, std::move(part), at_stake_ns, data, total));
      if (rule->calls_less_often) {
        auto& high_ns = findings.back().gain_high_ns;
        const auto more_ns = cases::part_of(to_compile.outside_ns, 1 - observing);
        high_ns = std::min(saturating_add(high_ns, more_ns), bare_call_ns(data, total));
      }
    }
  }
  if (auto finding = finding_on_fusion(data, lines, rows, total)) findings.push_back(std::move(*finding));
  if (auto finding = finding_on_idle_outside(data, total)) findings.push_back(std::move(*finding));
  state_what_compiling_brings(findings, to_compile, data, total);
  const auto sources = sources_of(data);
  for (auto& finding : findings) {
    finding.id = id_of(finding);
    finding.source = source_of(finding, data, sources);
  }
  std::ranges::stable_sort(findings, std::greater(), middle_of);
  if (findings.size() > kMostFindings) findings.resize(kMostFindings);
  return findings;
}

void complete(Finding& finding, const Gain& gain, std::int64_t at_stake_ns, const Profile& data,
              const RooflineRow& total) {
  const auto most_ns = bare_call_ns(data, total);
  const auto share = [&](double part) { return std::min(cases::part_of(at_stake_ns, part), most_ns); };
  finding.gain_low_ns = share(gain.low);
  finding.gain_high_ns = share(gain.high);
  finding.basis = gain.basis;
  finding.confidence = gain.confidence;
  finding.because = gain.because;
  if (cases::is_of_cpp(data) || (finding.try_it == kCompileIt && !cases::may_compile(data))) finding.try_it.reset();
  constexpr std::array<std::string_view, 4> kDoubtful = {"machine-busy", "roofs-busy", "roofs-doubtful", "timed-once"};
  const auto doubt = std::ranges::find_if(
      data.notes, [&](const Note& note) { return std::ranges::find(kDoubtful, note.code) != kDoubtful.end(); });
  const bool is_noted = doubt != data.notes.end();
  if ((!is_noted && !data.run.runs.beside_others) || finding.confidence == Confidence::low) return;
  finding.confidence = finding.confidence == Confidence::high ? Confidence::medium : Confidence::low;
  finding.because += is_noted ? ", but see the note " + doubt->code : ", but other processes were busy meanwhile";
}

}  // namespace roofprof
