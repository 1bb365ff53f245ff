// What the columns of a table mean: the sentences of its figures that hold for the report.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "analysis/whole/analysis.h"
#include "core/fields.h"
#include "report/header_and_footer.h"

namespace roofprof {

namespace {

constexpr std::string_view kMarkLegend = "; *: wastes more in ops of its own than the modules below it do";

// Whether the tree can show the mark.
bool marks_hotspots(const Report& report) {
  return std::ranges::count(report.analysis().wasting_themselves(), true) > 0;
}

// Of what stands for equal siblings; the number is that of the report's first.
std::string sibling_legend(const Report& report, const TableOptions& options) {
  if (options.expand) return "";
  const auto& groups = report.analysis().siblings();
  if (groups.empty()) return "";
  const auto count = groups.front().count;
  std::string text = fmt::format("; x{0}: {1}{0} equal modules", count, folds_siblings(options) ? "the mean of " : "");
  if (!folds_siblings(options)) text += " together";
  const bool has_sums = report.total().time_ns && !report.ceilings().empty();  // hotspots are listed
  if (folds_siblings(options) && has_sums) text += ", under \"most waste in\" their sum";
  return text + fmt::format(", {} shows each", switch_text(options, "expand"));
}

struct Spoken {
  Facts depends_on;
  const Sentence* sentence;
};

// What needs least comes first; then by the sentence's own order, then as the table of figures has it.
template <class Row>
std::vector<Spoken> sentences_of(Facts known) {
  std::vector<Spoken> spoken;
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto) {
    if (of_self) return;
    const auto add = [&](const Sentence& sentence) {
      const Facts depends_on = info.needs | sentence.when;
      const bool holds = (depends_on & ~known) == 0 && (sentence.unless & known) == 0;
      if (holds && !sentence.text.empty()) spoken.push_back({depends_on, &sentence});
    };
    add(info.legend);
    for (const Sentence& hint : info.hints) add(hint);
  });
  std::stable_sort(spoken.begin(), spoken.end(), [](const Spoken& a, const Spoken& b) {
    return a.depends_on != b.depends_on ? a.depends_on < b.depends_on : a.sentence->order < b.sentence->order;
  });
  return spoken;
}

template <class Row>
std::string legend_of(std::string text, Facts known, std::size_t width) {
  for (const Spoken& spoken : sentences_of<Row>(known)) text.append("; ").append(spoken.sentence->text);
  return labelled_paragraph("columns", text, width);
}

}  // namespace

std::string legend_lines(const Report& report, const TableOptions& options, TableKind kind, std::size_t width) {
  if (kind == TableKind::ranks) {
    if (report.ranks().empty()) return "";
    return labelled_paragraph(
        "columns",
        "step: the median one; compute: inside ops that are no collectives; comm.: while any collective "
        "was under way; exposed: of it, while no op computed; waiting: in collectives, until the "
        "last rank called; idle: wall - compute - exposed",
        width);
  }
  if (kind == TableKind::collectives) {
    if (report.analysis().collectives().empty()) return "";
    return labelled_paragraph(
        "columns",
        "one line for a collective in one module, phase, group and size; bytes and bandwidths as nccl-tests defines "
        "them; time: from the calls to their ends; wait: of it, until the last rank called (merged reports alone), "
        "transfer: the rest; exposed: of it, while no op computed; %roof = lower bound by the network's roof / time",
        width);
  }
  const Facts known = facts_of(report, kind);
  switch (kind) {
    case TableKind::modules:
      return legend_of<RooflineRow>(std::string("a row includes the modules below it") +
                                        std::string(marks_hotspots(report) ? kMarkLegend : "") +
                                        sibling_legend(report, options),
                                    known, width);
    case TableKind::regions:
      if (report.regions().empty()) return "";
      return legend_of<RooflineRow>(
          "a row has all that ran in its region, those inside it included; wall: from its opening to its end, calls "
          "added up",
          known, width);
    case TableKind::groups:
      return legend_of<GroupRow>("a row sums all calls of its ops" + sibling_legend(report, options), known, width);
    case TableKind::kernels:
      if (report.kernels().empty()) return "";
      return legend_of<KernelRow>("one line for a kernel, copy or memset in one module, op and launch size", known,
                                  width);
    case TableKind::ranks:
    case TableKind::collectives:
      return "";
  }
  return "";
}

}  // namespace roofprof
