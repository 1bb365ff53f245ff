#include "report/text_table.h"

#include <algorithm>

namespace roofprof {

namespace {

constexpr std::size_t kLabelWidth = 10;
constexpr std::size_t kLeastName = 10;  // what is left of a name in a tree, however deep

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

std::string fitted(const TextCell& cell, std::size_t indent, std::size_t width, Keep keep) {
  const std::size_t blanks = std::min(cell.level * indent, width);
  return std::string(blanks, ' ') + truncate(cell.text, width - blanks, keep);
}

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string blanks(width - std::min(width, display_width(text)), ' ');
  return left ? text + blanks : blanks + text;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

// Which columns are shown and how wide; a width of 0 is a dropped column.
struct TextTable::Layout {
  std::vector<std::size_t> widths;
  std::size_t gap = 2;
  std::size_t indent = 2;  // of each level

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

std::vector<std::size_t> TextTable::natural_widths(std::size_t indent) const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (const auto& column : columns_) widths.push_back(std::max<std::size_t>(display_width(column.heading), 1));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].level * indent + display_width(row[i].text));
    }
  }
  return widths;
}

std::size_t TextTable::least_width(std::size_t column, std::size_t thirds, std::size_t indent) const {
  if (columns_[column].min_width == 0) return 0;
  std::size_t least = columns_[column].min_width * thirds / 3;
  for (const auto& row : rows_) {
    const TextCell& cell = row[column];
    if (cell.level > 0) least = std::max(least, cell.level * indent + std::min(display_width(cell.text), kLeastName));
  }
  return least;
}

TextTable::Layout TextTable::fit(std::size_t width) const {
  Layout layout;
  layout.widths = natural_widths(layout.indent);
  if (layout.total() <= width) return layout;
  auto natural = layout.widths;
  const auto truncate = [&](std::size_t thirds) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (layout.widths[i] == 0) continue;
      const std::size_t least = least_width(i, thirds, layout.indent);
      layout.widths[i] = least > 0 ? std::min(natural[i], least) : natural[i];
    }
  };
  truncate(3);
  if (layout.total() > width) layout.gap = 1;
  if (layout.total() > width) truncate(2);
  const auto indent_by = [&](std::size_t blanks, std::size_t thirds) {
    layout.indent = blanks;
    natural = natural_widths(blanks);
    truncate(thirds);
  };
  if (layout.total() > width) indent_by(1, 2);
  while (layout.total() > width) {
    std::size_t victim = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (layout.widths[i] == 0 || columns_[i].drop_rank == 0) continue;
      if (victim == columns_.size() || columns_[i].drop_rank > columns_[victim].drop_rank) victim = i;
    }
    if (victim == columns_.size()) break;
    layout.widths[victim] = 0;
  }
  if (layout.indent == 1) {  // the columns that went may have left room
    indent_by(2, 3);
    if (layout.total() > width) indent_by(1, 2);
  }
  // What is left over goes to the truncated columns, the narrowest share first.
  std::size_t spare = width - std::min(width, layout.total());
  bool grew = true;
  while (spare > 0 && grew) {
    grew = false;
    for (std::size_t i = 0; i < columns_.size() && spare > 0; ++i) {
      if (layout.widths[i] == 0 || layout.widths[i] >= natural[i]) continue;
      ++layout.widths[i];
      --spare;
      grew = true;
    }
  }
  return layout;
}

std::string TextTable::render(std::size_t width, std::vector<std::string>* dropped) const {
  const Layout layout = fit(width);
  const auto line = [&](const auto& cell_at) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (layout.widths[i] == 0) continue;
      if (!text.empty()) text.append(layout.gap, ' ');
      text += padded(fitted(cell_at(i), layout.indent, layout.widths[i], columns_[i].keep), layout.widths[i],
                     columns_[i].left);
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

std::string labelled_paragraph(std::string_view label, std::string_view said, std::size_t width) {
  const std::string whole = printable(said);
  std::string_view text = whole;
  std::string result;
  std::string line = padded(printable(label), kLabelWidth, true);
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

std::pair<std::string, std::string> split_paragraph(std::string_view line) {
  std::string_view label = line.substr(0, kLabelWidth);
  label = label.substr(0, label.find_last_not_of(' ') + 1);
  return {std::string(label), std::string(line.substr(std::min(kLabelWidth, line.size())))};
}

ShortenedParagraph shortened_paragraph(std::string_view label, std::string_view text, std::string_view ending,
                                       std::size_t width, std::size_t lines) {
  const auto paragraph_of = [&](std::string_view shown, std::string_view mark) {
    return labelled_paragraph(label, std::string(shown).append(mark).append(ending), width);
  };
  std::string paragraph = paragraph_of(text, "");
  std::string_view shown = text;
  while (std::ranges::count(paragraph, '\n') > static_cast<std::ptrdiff_t>(lines)) {
    const std::size_t blank = shown.rfind(' ');
    if (blank == std::string_view::npos) break;
    shown = shown.substr(0, blank);
    paragraph = paragraph_of(shown, "…");
  }
  return {std::move(paragraph), shown.size() == text.size()};
}

}  // namespace roofprof
