#include "report/parts.h"

#include <stdexcept>

#include "analysis/whole/analysis.h"
#include "core/profile_data.h"
#include "report/document.h"
#include "report/header_and_footer.h"
#include "report/tables.h"

namespace roofprof {

namespace {

template <class Row>
std::vector<std::string> names_of_default(const Report& report, std::string_view by,
                                          const std::vector<DefaultColumn>& usual) {
  TableOptions options;
  options.by = by;
  std::vector<std::string> names;
  for (const auto& [column, layout] : choose_columns<Row>(report, options, usual)) names.push_back(column.name);
  return names;
}

// Of a paragraph of one line, label and text.
std::pair<std::string, std::string> split_paragraph(std::string_view line) {
  constexpr std::size_t kLabel = 10;
  std::string_view label = line.substr(0, kLabel);
  label = label.substr(0, label.find_last_not_of(' ') + 1);
  return {std::string(label), std::string(line.substr(std::min(kLabel, line.size())))};
}

std::string lines_of(const Report& report, std::string_view part, std::string_view by) {
  constexpr auto kWidth = static_cast<std::size_t>(kAnyWidth);
  if (part == "heading") return heading_lines(report, kWidth);
  if (part == "legend")
    return legend_lines(report, {.by = std::string(by), .speech = Speech::python, .expand = true}, kind_of(by), kWidth);
  if (part == "roofs") return roof_lines(report, kWidth);
  if (part == "coverage") return coverage_lines(report, kWidth);
  throw std::invalid_argument("a report prints heading, legend, roofs and coverage, not '" + std::string(part) + "'");
}

}  // namespace

std::vector<Paragraph> paragraphs_of(const Report& report, std::string_view part, std::string_view by) {
  const std::string text = lines_of(report, part, by);
  std::vector<Paragraph> paragraphs;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    if (auto [label, said] = split_paragraph(std::string_view(text).substr(start, end - start)); !said.empty()) {
      paragraphs.push_back({std::move(label), std::move(said)});
    }
    start = end + 1;
  }
  return paragraphs;
}

std::vector<std::string> default_columns_of(const Report& report, std::string_view by) {
  switch (kind_of(by)) {
    case TableKind::modules:
      return names_of_default<RooflineRow>(report, by, default_module_columns());
    case TableKind::regions:
      return names_of_default<RooflineRow>(report, by, default_region_columns());
    case TableKind::groups:
      return names_of_default<GroupRow>(report, by, default_op_columns());
    case TableKind::kernels:
      return names_of_default<KernelRow>(report, by, default_kernel_columns());
    case TableKind::ranks:
    case TableKind::collectives:
      return {};
  }
  return {};
}

std::vector<GroupRow> most_wasting(const Report& report) {
  std::vector<GroupRow> rows;
  for (const auto& hotspot : report.analysis().hotspots()) rows.push_back(hotspot.row);
  return rows;
}

std::vector<std::size_t> marked_rows(const Report& report) {
  const auto& marked = report.analysis().wasting_themselves();
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i]) indices.push_back(i);
  }
  return indices;
}

}  // namespace roofprof
