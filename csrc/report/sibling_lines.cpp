// What the mean of equal siblings hides: how their times scatter, and which of them is slow.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/whole/analysis.h"
#include "report/header_and_footer.h"
#include "report/units.h"

namespace roofprof {

namespace {

constexpr std::size_t kMostGroups = 3;  // those that take most time
constexpr std::size_t kMostSlow = 5;    // those with a slow one among them, which come first

std::int64_t all_ns(const Siblings& group) {
  return saturating_multiply(group.mean().time_ns.value_or(0), std::ssize(group.paths));
}

std::string text_of(const Siblings& group) {
  std::string text = fmt::format("{} x{}: {} each, spread {}", group.name, group.paths.size(),
                                 human_time(static_cast<double>(group.mean().time_ns.value_or(0))),
                                 human_percent(100 * *group.spread));
  if (group.slowest) {
    text += fmt::format(", slowest {}, {}x the median", *group.slowest, human_ratio(*group.slowest_ratio));
  }
  return text;
}

}  // namespace

std::string sibling_lines(const Report& report, std::size_t width) {
  std::vector<const Siblings*> groups;
  for (const Siblings& group : report.analysis().siblings()) {
    if (group.spread) groups.push_back(&group);
  }
  std::ranges::stable_sort(groups, [](const Siblings* a, const Siblings* b) {
    return a->slowest.has_value() != b->slowest.has_value() ? a->slowest.has_value() : all_ns(*a) > all_ns(*b);
  });
  const auto slow =
      static_cast<std::size_t>(std::ranges::count_if(groups, [](const auto& g) { return g->slowest.has_value(); }));
  const std::size_t shown = std::min(groups.size(), std::clamp(slow, kMostGroups, kMostSlow));
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    text += labelled_paragraph(i == 0 ? "siblings" : "", text_of(*groups[i]), width);
  }
  if (slow > shown) text += labelled_paragraph("", fmt::format("and {} more with a slow one", slow - shown), width);
  return text;
}

}  // namespace roofprof
