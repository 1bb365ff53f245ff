#include "analysis/findings/of_modules.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "analysis/findings/finding_case.h"
#include "analysis/findings/finding_rules.h"
#include "analysis/findings/waste_rules.h"
#include "analysis/fused_bound.h"
#include "analysis/gainable_idle.h"
#include "analysis/hotspots.h"
#include "analysis/rows.h"
#include "core/phrases.h"

namespace roofprof {
namespace {

// Returns the time of a row that fusing all of its ops could save: by the roofs, and no more than it took. A row that
// is slower than its roofs for other reasons keeps these.
std::int64_t saving_of(const RooflineRow& row) {
  if (!row.time_ns || !row.lower_bound_time_ns || !row.fused_bound_time_ns || !row.percent_of_roof) return 0;
  return std::max<std::int64_t>(std::min(*row.time_ns, *row.lower_bound_time_ns) - *row.fused_bound_time_ns, 0);
}

// A line of the folded tree: what all of its members could save, and what of this no module below it could by itself.
struct Line {
  std::size_t at = 0;
  std::int64_t saves_ns = 0;
  std::int64_t saves_alone_ns = 0;
};

bool is_inside(std::size_t line, std::size_t outer, const std::vector<FoldedRow>& lines) {
  auto at = static_cast<std::int64_t>(line);
  while (std::cmp_greater(at, outer)) at = lines[static_cast<std::size_t>(at)].parent;
  return std::cmp_equal(at, outer);
}

}  // namespace

std::optional<Finding> finding_on_fusion(const Profile& data, const std::vector<FoldedRow>& lines,
                                         const std::vector<RooflineRow>& rows, const RooflineRow& total) {
  const auto all_ns = static_cast<double>(total.time_ns.value_or(0));
  if (all_ns <= 0 || !data.counts.crossings_known || data.origin.predicted() != nullptr || cases::ran_compiled(data))
    return {};
  std::vector<Line> sums(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    sums[i].at = i;
    for (const auto member : lines[i].members)
      sums[i].saves_ns = saturating_add(sums[i].saves_ns, saving_of(rows[member]));
    sums[i].saves_alone_ns += sums[i].saves_ns;
    if (lines[i].parent >= 0) sums[static_cast<std::size_t>(lines[i].parent)].saves_alone_ns -= sums[i].saves_ns;
  }
  const auto least_ns = static_cast<std::int64_t>(kLeastShare * all_ns);
  std::erase_if(sums, [&](const Line& line) {
    return line.saves_alone_ns < std::max<std::int64_t>(least_ns, 1) || lines[line.at].mean.path.starts_with('(');
  });
  std::ranges::stable_sort(sums, std::greater(), &Line::saves_alone_ns);
  std::vector<Line> chosen;
  for (const auto& line : sums) {
    const auto nests = [&](const Line& other) {
      return is_inside(line.at, other.at, lines) || is_inside(other.at, line.at, lines);
    };
    if (std::ranges::none_of(chosen, nests)) chosen.push_back(line);
  }
  if (chosen.empty()) return {};

  std::int64_t saves_ns = 0;
  std::int64_t gained_ns = 0;  // where ops stay as far from their roofs as they were
  double taken_ns = 0;
  double bytes = 0;
  double fused_bytes = 0;
  Finding finding;
  for (const auto& line : chosen) {
    saves_ns = saturating_add(saves_ns, line.saves_ns);
    for (const auto member : lines[line.at].members) {
      const auto& row = rows[member];
      finding.modules.push_back(row.path);
      taken_ns += static_cast<double>(row.time_ns.value_or(0));
      bytes += static_cast<double>(row.bytes);
      fused_bytes += static_cast<double>(row.fused_bytes.value_or(0));
      if (saving_of(row) > 0) {
        const auto kept = static_cast<double>(*row.fused_bound_time_ns) / static_cast<double>(*row.lower_bound_time_ns);
        gained_ns = saturating_add(gained_ns, cases::part_of(row.op_time_ns.value_or(*row.time_ns), 1 - kept));
      }
    }
  }
  const auto& largest = lines[chosen.front().at];
  finding.rule = "fusion";
  finding.module = largest.mean.path;
  finding.evidence = {{"percent_saved", 100 * static_cast<double>(saves_ns) / all_ns},
                      {"bytes", bytes},
                      {"fused_bytes", fused_bytes},
                      {"percent_of_time", 100 * taken_ns / all_ns}};
  finding.bound = to_string(largest.mean.bound);
  finding.text = sentences::modules_text(finding, largest.members.size());
  finding.text += " (" + percent(taken_ns / all_ns) + " of the time): of the bytes that its ops move, " +
                  percent(fused_bytes / bytes) + " cross its boundary, and in one kernel it would move no others";
  if (cases::may_compile(data)) {
    finding.action = "try torch.compile";
    finding.try_it = kCompileIt;
  } else {
    finding.action = "compute its ops in one kernel";
  }
  finding.reference = "this report's fused bound";
  // Ops that are slower than their roofs would be so in one kernel, too, but once.
  complete(finding, {0, 1, "fused bound", Confidence::medium, "a compiler may not fuse all of it"}, gained_ns, data,
           total);
  return finding;
}

std::optional<Finding> finding_on_unused(const Profile& data, const std::vector<RooflineRow>& rows,
                                         const RooflineRow& total) {
  if (!data.counts.crossings_known || data.origin.predicted() != nullptr || cases::ran_compiled(data) ||
      !data.counts.unobserved.empty())
    return {};
  // Out has the bytes that leave a module, and those of them that nothing reads.
  struct Out {
    std::int64_t bytes = 0;
    std::int64_t unread = 0;
    bool is_unused() const { return bytes > 0 && unread >= bytes; }
  };
  std::vector<Out> out(data.tree.modules.size());
  for (const auto& bucket : data.counts.ops) {
    for_each_crossing(bucket, data.tree.modules, [&](ModuleId module, const Crossing& crossing) {
      auto& of = out[index_of(module)];
      of.bytes = saturating_add(of.bytes, crossing.write_bytes);
      of.unread = saturating_add(of.unread, crossing.unread_bytes);
    });
  }
  std::map<std::string_view, const RooflineRow*> row_of;
  for (const auto& row : rows) row_of.emplace(row.path, &row);
  std::vector<const RooflineRow*> unused;
  for (std::size_t id = 0; id < out.size(); ++id) {
    const auto& module = data.tree.modules[id];
    if (!out[id].is_unused() || module.path.empty() || module.path.starts_with('(')) continue;
    bool inside_another = false;
    for (auto above = module.parent; above >= 0; above = data.tree.modules[index_of(above)].parent)
      inside_another = inside_another || out[index_of(above)].is_unused();
    const auto row = row_of.find(module.path);
    if (!inside_another && row != row_of.end()) unused.push_back(row->second);
  }
  const auto time_of_row = [](const RooflineRow* row) { return row->time_ns.value_or(0); };
  std::ranges::stable_sort(unused, std::greater(), time_of_row);
  std::int64_t taken_ns = 0;
  for (const auto* row : unused) taken_ns = saturating_add(taken_ns, time_of_row(row));
  const auto all_ns = static_cast<double>(total.time_ns.value_or(0));
  if (unused.empty() || static_cast<double>(taken_ns) < kLeastShare * all_ns) return {};

  Finding finding;
  finding.rule = "never-used";
  for (const auto* row : unused) finding.modules.push_back(row->path);
  finding.module = finding.modules.front();
  finding.bound = to_string(unused.front()->bound);
  finding.evidence = {{"bytes", static_cast<double>(unused.front()->output_bytes.value_or(0))},
                      {"percent_of_time", 100 * static_cast<double>(taken_ns) / all_ns}};
  finding.text = listed(finding.modules, kNamed) + " (" + percent(static_cast<double>(taken_ns) / all_ns) +
                 " of the time): no op reads the result, which is gone when the model returns";
  finding.action = "leave the call out unless code that is no op reads it (torch.save, an extension)";
  finding.reference = "what crosses the boundaries of modules";
  complete(finding,
           {0.8, 1, "the time that it took", Confidence::medium,
            "no op reads its results; what reads memory without an op is not seen"},
           taken_ns, data, total);
  return finding;
}

std::optional<Finding> finding_on_idle_outside(const Profile& data, const RooflineRow& total) {
  constexpr double kMuch = 0.2;
  const auto outside_ns = idle_outside_ns(total);
  const auto all_ns = static_cast<double>(saturating_add(total.busy_ns.value_or(0), total.idle_ns.value_or(0)));
  if (outside_ns <= 0 || static_cast<double>(outside_ns) < kMuch * all_ns) return {};
  const double us = static_cast<double>(outside_ns) / 1e3;
  const double share = static_cast<double>(outside_ns) / all_ns;
  Finding finding;
  finding.rule = "idle-outside";
  finding.op = kIdleDevice;
  finding.modules = {""};
  finding.bound = to_string(Bound{BoundKind::overhead, ""});
  finding.evidence = {{"time_us", us}, {"percent_outside_launches", 100 * share}};
  finding.text = "the device: it ran nothing for " + sentences::text_of_microseconds(us) + " (" + percent(share) +
                 " of its time) before its first launch and behind its last; ";
  const auto ran = facts_in(data.run.environment).host_before_launches;
  finding.text += ran.empty() ? "what the host ran then is not known" : "before, the host ran " + ran;
  finding.action =
      "no kernel waits there: do it beforehand or while the device works, or leave it out of what is timed";
  finding.reference = "this report's idle time";
  complete(finding, {0, 0, "the device's idle time", Confidence::high, "it is no time between launches"}, outside_ns,
           data, total);
  return finding;
}

bool TimeToCompile::add(const FindingCase& where) {
  // torch.compile may keep what the program asks for by name: each copy of such a loop reads what the one before wrote.
  const bool is_requested = moves_as_requested(where);
  if (where.is_outside_ops()) {
    outside_ns = saturating_add(outside_ns, where.time_ns());
    usual_ns = saturating_add(usual_ns, where.outside_ns());
  } else if (!is_requested && where.ops->macs == 0 && where.ops->bytes > 0) {
    fused_ns = saturating_add(fused_ns, where.time_ns());
  } else if (!is_requested && where.wants_channels_last()) {
    layout_ns = saturating_add(layout_ns, where.wasted_ns());
  } else {
    return false;
  }
  return true;
}

void state_what_compiling_brings(std::vector<Finding>& findings, const TimeToCompile& time, const Profile& data,
                                 const RooflineRow& total) {
  // Compiling takes away these shares of the time, as was measured (docs/findings.md).
  constexpr double kLeast = 0.2;
  constexpr double kMost = 0.95;
  constexpr double kMostOfLayout = 0.4;
  if (data.device) return;
  const auto compiles = [](const Finding& finding) { return finding.try_it == kCompileIt; };
  const auto best = std::ranges::max_element(
      findings, {}, [&](const Finding& finding) { return compiles(finding) ? finding.gain_high_ns : -1; });
  if (best == findings.end() || !compiles(*best)) return;
  Finding kept = *best;
  std::erase_if(findings, compiles);

  const auto all_ns = static_cast<double>(*total.time_ns);
  const auto fused_ns = static_cast<double>(time.fused_ns);
  const auto outside_ns = static_cast<double>(time.outside_ns);
  // Observing takes time outside of ops, too, which nothing can save.
  const double observing_ns = all_ns * cases::observing_share(data);
  const auto unobserved = [&](std::int64_t ns) { return std::max(static_cast<double>(ns) - observing_ns, 0.0); };
  const double low_ns = kLeast * (fused_ns + unobserved(time.usual_ns));
  const double high_ns =
      kMost * (fused_ns + unobserved(time.outside_ns)) + kMostOfLayout * static_cast<double>(time.layout_ns);
  kept.text += "; compiling changes the whole model, of whose time " + percent(outside_ns / all_ns) +
               " is outside of ops and " + percent(fused_ns / all_ns) + " in ops that it can fuse";
  std::set<std::string_view> shared;
  for (const auto& other : findings) {
    const auto is_case = [&](const std::string& op) { return time.cases.contains({other.rule, op}); };
    if (std::ranges::any_of(other.ops, is_case)) shared.insert(other.rule);
  }
  if (!shared.empty()) kept.text += "; its gain overlaps with that of " + listed(shared);
  kept.evidence["percent_outside_ops"] = 100 * outside_ns / all_ns;
  kept.evidence["percent_fusible"] = 100 * fused_ns / all_ns;
  complete(kept,
           {low_ns / all_ns, high_ns / all_ns, "time outside of ops and in those that it fuses", Confidence::medium,
            "it changes the model as a whole, and may not fuse all of it"},
           *total.time_ns, data, total);
  findings.push_back(std::move(kept));
}

}  // namespace roofprof
