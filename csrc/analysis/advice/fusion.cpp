#include "analysis/advice/fusion.h"

#include <algorithm>
#include <string>
#include <utility>

#include "analysis/advice/advice_case.h"
#include "analysis/advice/advice_rules.h"
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

std::optional<std::pair<std::int64_t, Advice>> advice_on_fusion(const ProfileData& data,
                                                                const std::vector<FoldedRow>& lines,
                                                                const std::vector<RooflineRow>& rows,
                                                                const Figures& total) {
  const auto all_ns = static_cast<double>(total.time_ns.value_or(0));
  if (all_ns <= 0 || !data.crossings_known || data.predicted() != nullptr || cases::ran_compiled(data)) return {};
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
  double taken_ns = 0;
  double bytes = 0;
  double fused_bytes = 0;
  Advice advice;
  for (const auto& line : chosen) {
    saves_ns = saturating_add(saves_ns, line.saves_ns);
    for (const auto member : lines[line.at].members) {
      const auto& row = rows[member];
      advice.modules.push_back(row.path);
      taken_ns += static_cast<double>(row.time_ns.value_or(0));
      bytes += static_cast<double>(row.bytes);
      fused_bytes += static_cast<double>(row.fused_bytes.value_or(0));
    }
  }
  const auto& largest = lines[chosen.front().at];
  const auto others = std::ssize(advice.modules) - std::ssize(largest.members);
  advice.rule = "fusion";
  advice.module = largest.mean.path;
  advice.figures = {{"percent_saved", 100 * static_cast<double>(saves_ns) / all_ns},
                    {"bytes", bytes},
                    {"fused_bytes", fused_bytes},
                    {"percent_of_time", 100 * taken_ns / all_ns}};
  advice.text = display_path(advice.module);
  if (largest.members.size() > 1) advice.text += " x" + std::to_string(largest.members.size());
  if (others > 0) advice.text += " and " + counted(others, "more module", "more modules");
  advice.text += " (" + percent(taken_ns / all_ns) + " of the time): fusion could save up to " +
                 percent(static_cast<double>(saves_ns) / all_ns) + " of the time here, as " +
                 percent(fused_bytes / bytes) + " of the bytes that its ops move cross its boundary" +
                 (cases::may_compile(data) ? ": try torch.compile" : "");
  advice.source = "this report's fused bound";
  return std::pair(saves_ns, std::move(advice));
}

}  // namespace roofprof
