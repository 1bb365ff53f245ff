// The ranks of a merged report: one line for each.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "analysis/whole/analysis.h"
#include "core/phrases.h"
#include "core/profile_data.h"
#include "report/document.h"
#include "report/header_and_footer.h"
#include "report/tables.h"
#include "report/units.h"

namespace roofprof {

namespace {

constexpr std::size_t kMinRankWidth = 6;

template <class Value>
std::string time_or_none(const std::optional<Value>& ns) {
  return ns ? human_time(static_cast<double>(*ns)) : "n/a";
}

std::size_t hosts_of(const std::vector<Rank>& ranks) {
  std::set<std::string> hosts;
  for (const auto& rank : ranks) hosts.insert(rank.host);
  return hosts.size();
}

}  // namespace

std::string rank_table(const Report& report, const TableOptions& options) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(options.width, 0));
  const auto& ranks = report.ranks();
  if (ranks.empty()) {
    return labelled_paragraph("", "no ranks: the report is of one process (roofprof.gather, roofprof merge)", width);
  }
  Table table{{{"rank", false, kMinRankWidth, 0},
               {"host", true, 0, 4},
               {"device", true, 0, 3},
               {"steps", false, 0, 7},
               {"step", false, 0, 2},
               {"spread", false, 0, 6},
               {"wall", false, 0, 1},
               {"time", false, 0, 5},
               {"compute", false, 0, 0},
               {"comm.", false, 0, 4},
               {"exposed", false, 0, 0},
               {"waiting", false, 0, 0},
               {"idle", false, 0, 3},
               {"MACs", false, 0, 9},
               {"bytes", false, 0, 10},
               {"%roof", false, 0, 0},
               {"peak memory", false, 0, 8}}};
  const std::size_t limit = options.limit > 0 ? static_cast<std::size_t>(options.limit) : kReadableRows;
  for (const auto& rank : std::span(ranks).first(std::min(limit, ranks.size()))) {
    table.add({std::to_string(rank.rank) + (rank.partial ? " (partial)" : ""), rank.host.empty() ? "n/a" : rank.host,
               rank.device, rank.steps > 0 ? std::to_string(rank.steps) : "n/a", time_or_none(rank.step_ns),
               rank.step_spread ? human_percent(100 * *rank.step_spread) : "n/a", time_or_none(rank.wall_ns),
               time_or_none(rank.time_ns), time_or_none(rank.compute_ns), time_or_none(rank.communication_ns),
               time_or_none(rank.exposed_ns), time_or_none(rank.waiting_ns), time_or_none(rank.idle_ns),
               human_count(static_cast<double>(rank.macs), "", ""), human_bytes(static_cast<double>(rank.bytes)),
               rank.percent_of_roof ? human_percent(*rank.percent_of_roof) : "n/a",
               rank.peak_memory ? human_bytes(static_cast<double>(*rank.peak_memory)) : "n/a"});
  }
  std::vector<std::string> dropped;
  std::string text = render_rows(table, width, &dropped);
  const std::size_t left_out = ranks.size() - std::min(ranks.size(), limit);
  text += left_out_line(left_out, fmt::format("after these: {} shows more", option_text(options, "limit")), width);
  return text + dropped_line(dropped, options);
}

std::string rank_words(const Report& report) {
  const auto& ranks = report.ranks();
  std::string text = counted(std::ssize(ranks), "rank");
  const bool hosts_known = std::ranges::all_of(ranks, [](const Rank& rank) { return !rank.host.empty(); });
  if (hosts_known) text += " on " + counted(static_cast<std::int64_t>(hosts_of(ranks)), "host");
  text += ": work and times are sums over ranks";
  const auto wall = std::ranges::max_element(ranks, {}, [](const Rank& rank) { return rank.wall_ns.value_or(-1); });
  if (wall != ranks.end() && wall->wall_ns) {
    text += fmt::format("; the longest took {} (rank {})", human_time(static_cast<double>(*wall->wall_ns)), wall->rank);
  }
  return text;
}

std::string late_rank_words(const Report& report) {
  const auto& late = report.analysis().late_rank();
  if (!late) return "";
  const auto time = [](std::int64_t ns) { return human_time(static_cast<double>(ns)); };
  std::string text = fmt::format("rank {} keeps the others waiting: they wait {} in collectives, it {}", late->rank,
                                 time(late->others_ns), time(late->waiting_ns));
  const auto rank = std::ranges::find(report.ranks(), late->rank, &Rank::rank);
  if (rank->compute_ns && rank->idle_ns) {
    text += fmt::format("; it computes {} and is idle {}", time(*rank->compute_ns), time(*rank->idle_ns));
  }
  return text;
}

std::string slow_rank_words(const Report& report) {
  const auto& slow = report.analysis().slow_rank();
  if (!slow) return "";
  const std::string text =
      fmt::format("rank {} computes {} times as long as the median rank", slow->rank, human_ratio(slow->ratio));
  std::vector<std::string> modules;
  for (const auto& path : topmost_of(slow->modules)) modules.push_back(path);
  return modules.empty() ? text : text + ", most in " + listed(modules, kNamed);
}

}  // namespace roofprof
