#include "report/text_table.h"

#include <algorithm>

#include "report/utf8.h"

namespace roofprof {

namespace {

constexpr std::size_t kLabelWidth = 10;

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

const std::string& text_of(const TextCell& cell, bool brief) {
  return brief && !cell.brief.empty() ? cell.brief : cell.text;
}

// Deep trees must not push the name out of its column.
std::string fitted(const TextCell& cell, bool brief, std::size_t width) {
  const std::size_t indent = std::min(cell.indent, width / 2);
  return std::string(indent, ' ') + truncate_middle(text_of(cell, brief), width - indent);
}

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string blanks(width - std::min(width, display_width(text)), ' ');
  return left ? text + blanks : blanks + text;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

// Which columns are shown and how wide; a width of 0 is a dropped column.
struct Layout {
  std::vector<std::size_t> widths;
  std::size_t gap = 2;
  bool brief = false;

  std::size_t total() const {
    std::size_t shown = 0;
    std::size_t sum = 0;
    for (const std::size_t width : widths) {
      shown += width > 0 ? 1 : 0;
      sum += width;
    }
    return sum + gap * (shown > 0 ? shown - 1 : 0);
  }
};

// Truncates what may be truncated and drops columns until the layout keeps the width.
Layout fit(const std::vector<TextColumn>& columns, const std::vector<std::size_t>& natural, std::size_t width) {
  Layout layout{natural};
  const auto truncate = [&](std::size_t parts_of_three) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::size_t least = columns[i].min_width * parts_of_three / 3;
      if (least > 0) layout.widths[i] = std::min(natural[i], least);
    }
  };
  truncate(3);
  if (layout.total() > width) layout.gap = 1;
  if (layout.total() > width) truncate(2);
  while (layout.total() > width) {
    std::size_t victim = columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (layout.widths[i] == 0 || columns[i].drop_rank == 0) continue;
      if (victim == columns.size() || columns[i].drop_rank > columns[victim].drop_rank) victim = i;
    }
    if (victim == columns.size()) break;
    layout.widths[victim] = 0;
  }
  // What is left over goes to the truncated columns, the narrowest share first.
  std::size_t spare = width - std::min(width, layout.total());
  bool grew = true;
  while (spare > 0 && grew) {
    grew = false;
    for (std::size_t i = 0; i < columns.size() && spare > 0; ++i) {
      if (layout.widths[i] == 0 || layout.widths[i] >= natural[i]) continue;
      ++layout.widths[i];
      --spare;
      grew = true;
    }
  }
  return layout;
}

}  // namespace

std::vector<std::size_t> TextTable::natural_widths(bool brief) const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (const auto& column : columns_) widths.push_back(std::max<std::size_t>(display_width(column.heading), 1));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].indent + display_width(text_of(row[i], brief)));
    }
  }
  return widths;
}

std::string TextTable::render(std::size_t width, std::vector<std::string>* dropped) const {
  Layout layout{natural_widths(false)};
  if (layout.total() > width) {
    layout = fit(columns_, natural_widths(true), width);
    layout.brief = true;
  }
  const auto line = [&](const auto& cell_at) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (layout.widths[i] == 0) continue;
      if (!text.empty()) text.append(layout.gap, ' ');
      text += padded(fitted(cell_at(i), layout.brief, layout.widths[i]), layout.widths[i], columns_[i].left);
    }
    return without_trailing_blanks(std::move(text));
  };

  const std::string rule = repeated("─", layout.total()) + '\n';
  std::string text = line([&](std::size_t i) { return TextCell{columns_[i].heading}; }) + rule;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (std::find(rules_.begin(), rules_.end(), r) != rules_.end()) text += rule;
    text += line([&](std::size_t i) -> const TextCell& { return rows_[r][i]; });
  }
  for (std::size_t i = 0; dropped != nullptr && i < columns_.size(); ++i) {
    if (layout.widths[i] == 0) dropped->push_back(columns_[i].heading);
  }
  return text;
}

std::string labelled_paragraph(std::string_view label, std::string_view text, std::size_t width) {
  std::string result;
  std::string line = padded(std::string(label), kLabelWidth, true);
  std::size_t length = display_width(line);
  const std::size_t start = length;
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t needed = display_width(word) + (first ? 0 : 1);
    if (!first && length + needed > width) {
      result += without_trailing_blanks(std::move(line));
      line = std::string(start, ' ');
      length = start;
      first = true;
    }
    if (!first) line += ' ';
    line += word;
    length += display_width(word) + (first ? 0 : 1);
    first = false;
  }
  return result + without_trailing_blanks(std::move(line));
}

}  // namespace roofprof
