// What to do about the waste, below the list of it.

#include <fmt/format.h>

#include <algorithm>

#include "analysis/whole/analysis.h"
#include "report/header_and_footer.h"

namespace roofprof {

std::string advice_lines(const Report& report, std::size_t width) {
  constexpr std::size_t kMost = 5;
  const auto& advice = report.analysis().advice();
  std::string text;
  for (std::size_t i = 0; i < std::min(advice.size(), kMost); ++i) {
    const auto sentence = fmt::format("{} [{}]", advice[i].text, advice[i].source);
    text += labelled_paragraph(i == 0 ? "advice" : "", sentence, width);
  }
  return text.empty() ? "" : '\n' + text;
}

}  // namespace roofprof
