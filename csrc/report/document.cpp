#include "report/document.h"

#include <algorithm>
#include <limits>

namespace roofprof {

namespace {

constexpr std::size_t kLabelWidth = 10;
constexpr std::size_t kLeastName = 10;  // what is left of a name in a tree, however deep

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

std::string fitted(const Cell& cell, std::size_t indent, std::size_t width, Keep keep) {
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

// The width of each column; one of width 0 is dropped.
class TextLayout {
 public:
  explicit TextLayout(const Table& table) : table_(table), columns_(table.columns) {}

  std::string render(std::size_t width, std::vector<std::string>* dropped);

 private:
  std::size_t total() const {
    std::size_t shown = 0;
    std::size_t sum = 0;
    for (const std::size_t width : widths_) {
      shown += width > 0 ? 1 : 0;
      sum += width;
    }
    return sum + gap_ * (shown > 0 ? shown - 1 : 0);
  }
  std::vector<std::size_t> natural_widths() const;
  // Returns the least width of a column that may be truncated to `thirds` / 3 of its minimum; 0 thirds: it may not be.
  std::size_t least_width(std::size_t column, std::size_t thirds) const;
  void fit(std::size_t width);

  const Table& table_;
  const std::vector<TableColumn>& columns_;
  std::vector<std::size_t> widths_;
  std::size_t gap_ = 2;
  std::size_t indent_ = 2;  // of each level
};

std::vector<std::size_t> TextLayout::natural_widths() const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (const auto& column : columns_) widths.push_back(std::max<std::size_t>(display_width(column.heading), 1));
  for (const auto& row : table_.rows) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      widths[i] = std::max(widths[i], row.cells[i].level * indent_ + display_width(row.cells[i].text));
    }
  }
  return widths;
}

std::size_t TextLayout::least_width(std::size_t column, std::size_t thirds) const {
  if (columns_[column].min_width == 0) return 0;
  std::size_t least = columns_[column].min_width * thirds / 3;
  for (const auto& row : table_.rows) {
    const Cell& cell = row.cells[column];
    if (cell.level > 0) least = std::max(least, cell.level * indent_ + std::min(display_width(cell.text), kLeastName));
  }
  return least;
}

void TextLayout::fit(std::size_t width) {
  widths_ = natural_widths();
  if (total() <= width) return;
  auto natural = widths_;
  const auto truncate = [&](std::size_t thirds) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths_[i] == 0) continue;
      const std::size_t least = least_width(i, thirds);
      widths_[i] = least > 0 ? std::min(natural[i], least) : natural[i];
    }
  };
  truncate(3);
  if (total() > width) gap_ = 1;
  if (total() > width) truncate(2);
  const auto indent_by = [&](std::size_t blanks, std::size_t thirds) {
    indent_ = blanks;
    natural = natural_widths();
    truncate(thirds);
  };
  if (total() > width) indent_by(1, 2);
  while (total() > width) {
    std::size_t victim = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths_[i] == 0 || columns_[i].drop_rank == 0) continue;
      if (victim == columns_.size() || columns_[i].drop_rank > columns_[victim].drop_rank) victim = i;
    }
    if (victim == columns_.size()) break;
    widths_[victim] = 0;
  }
  if (indent_ == 1) {  // the columns that went may have left room
    indent_by(2, 3);
    if (total() > width) indent_by(1, 2);
  }
  if (total() > width) truncate(1);  // nothing is left to drop
  // The truncated columns get the rest of the width, the narrowest share first.
  std::size_t spare = width - std::min(width, total());
  bool grew = true;
  while (spare > 0 && grew) {
    grew = false;
    for (std::size_t i = 0; i < columns_.size() && spare > 0; ++i) {
      if (widths_[i] == 0 || widths_[i] >= natural[i]) continue;
      ++widths_[i];
      --spare;
      grew = true;
    }
  }
}

std::string TextLayout::render(std::size_t width, std::vector<std::string>* dropped) {
  fit(width);
  const auto line = [&](const auto& cell_at) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths_[i] == 0) continue;
      if (!text.empty()) text.append(gap_, ' ');
      text += padded(fitted(cell_at(i), indent_, widths_[i], columns_[i].keep), widths_[i], columns_[i].left);
    }
    return without_trailing_blanks(std::move(text));
  };

  const std::string rule = repeated("─", total()) + '\n';
  std::string text = line([&](std::size_t i) { return Cell{columns_[i].heading}; }) + rule;
  for (std::size_t r = 0; r < table_.rows.size(); ++r) {
    if (std::ranges::count(table_.rules, r) > 0) text += rule;
    text += line([&](std::size_t i) -> const Cell& { return table_.rows[r].cells[i]; });
  }
  for (std::size_t i = 0; dropped != nullptr && i < columns_.size(); ++i) {
    if (widths_[i] == 0) dropped->push_back(columns_[i].heading);
  }
  return text;
}

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
  std::string all;
  for (const auto& text : texts) all.append(all.empty() ? "" : between).append(text);
  return all;
}

// The column of labels: as wide as that of reports, wider for longer labels; none where a document is plain lines.
std::size_t label_width(const Document& document) {
  std::size_t longest = 0;
  bool plain = true;
  for (const Block& block : document.blocks) {
    const auto* paragraph = std::get_if<Paragraph>(&block);
    if (paragraph != nullptr) longest = std::max(longest, display_width(printable(paragraph->label)));
    plain = plain && paragraph != nullptr && longest == 0;
  }
  return plain ? 0 : longest < kLabelWidth ? kLabelWidth : longest + 2;
}

// Returns "label     text text text", wrapped at `width`, later lines indented below the text.
std::string wrapped(std::string_view label, std::string_view content, std::size_t labels, std::size_t width) {
  const std::string whole = printable(content);
  std::string_view text = whole;
  std::string result;
  std::string line = padded(printable(label), labels, true);
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

struct ShortenedParagraph {
  std::string text;
  bool whole = true;  // nothing was left out
};

// Returns the paragraph in at most `lines` lines: words before `ending` give way to "…".
ShortenedParagraph shortened(std::string_view label, std::string_view text, std::string_view ending, std::size_t labels,
                             std::size_t width, std::size_t lines) {
  const auto paragraph_of = [&](std::string_view shown, std::string_view mark) {
    return wrapped(label, std::string(shown).append(mark).append(ending), labels, width);
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

// Renders one block after another.
class TextRenderer {
 public:
  TextRenderer(std::size_t width, std::size_t labels)
      : width_(width > 0 ? width : kUnlimited), of_paragraphs_(std::max(width_, kLeastParagraph)), labels_(labels) {}

  void show(const Heading& heading) {
    separate(true);
    text_ += without_trailing_blanks(printable(heading.text));
  }

  void show(const Paragraph& paragraph) {
    if (paragraph.if_shortened && !shortened_) return;
    separate(paragraph.apart);
    const std::size_t lines = paragraph.most_lines > 0 ? paragraph.most_lines : kUnlimited;
    const auto shown =
        shortened(paragraph.label, paragraph.content(), paragraph.ending, labels_, of_paragraphs_, lines);
    shortened_ = shortened_ || !shown.whole || !paragraph.ending.empty();
    text_ += shown.text;
  }

  void show(const Table& table) {
    separate(true);
    std::vector<std::string> dropped;
    text_ += render_rows(table, width_, &dropped);
    for (const auto& remark : table.remarks) text_ += wrapped("", remark, labels_, of_paragraphs_);
    if (dropped.empty() || table.if_dropped.empty()) return;
    std::string remark = table.if_dropped;
    if (const auto at = remark.find("{}"); at != std::string::npos) remark.replace(at, 2, joined(dropped, ", "));
    text_ += wrapped("", remark, labels_, of_paragraphs_);
  }

  // Ends a block. `apart`: true if an empty line must follow it.
  void end(bool apart) { apart_ = apart; }
  std::string take() { return std::move(text_); }

 private:
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::int32_t>::max();
  static constexpr std::size_t kLeastParagraph = 40;

  void separate(bool apart) {
    if (!text_.empty() && (apart || apart_)) text_ += '\n';
  }

  std::size_t width_;
  std::size_t of_paragraphs_;
  std::size_t labels_;
  std::string text_;
  bool apart_ = false;
  bool shortened_ = false;
};

// GitHub looks for names, numbers of issues, addresses and formulas in what Markdown has made of a text, where an
// escaped sign is the sign itself. Such signs are put into separate elements, across which it does not look.
bool is_looked_for(std::string_view text, std::size_t at) {
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  const auto ends_in = [&](std::string_view word) {
    if (at < word.size()) return false;
    return std::ranges::equal(text.substr(at - word.size(), word.size()), word, {}, [](char letter) {
      return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : +letter;
    });
  };
  switch (text[at]) {
    case '@':  // a person, an address
    case '$':  // a formula
      return true;
    case '#':  // #12
      return is_digit(at + 1);
    case '-':  // GH-12
      return is_digit(at + 1) && ends_in("gh");
    case ':':
      return text.substr(at).starts_with("://");
    case '.':
      return ends_in("www");
    default:
      return false;
  }
}

// Returns the text as Markdown shows it, unchanged: signs that Markdown, HTML or GitHub would act on do nothing.
std::string markdown_text(std::string_view given) {
  constexpr std::string_view kActedOn = "\\`*_[]<>|#~";
  const std::string text = printable(given);
  std::string escaped;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      escaped += "&amp;";
    } else if (is_looked_for(text, at)) {
      escaped.append("<span>").append(1, text[at]).append("</span>");
    } else {
      if (kActedOn.find(text[at]) != std::string_view::npos) escaped += '\\';
      escaped += text[at];
    }
  }
  return escaped;
}

// Returns the same at the start of a line, where a number or a dash would begin a list, and blanks a block of code.
std::string markdown_line(std::string_view given) {
  std::string text = markdown_text(given);
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  const std::size_t mark = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view begins = mark == 0 ? "-+=" : ".)";
  if (mark < text.size() && begins.find(text[mark]) != std::string_view::npos) text.insert(mark, 1, '\\');
  return text;
}

// Renders one block after another, with an empty line between blocks.
struct MarkdownRenderer {
  std::string text;

  void show(const Heading& heading) { add("### " + markdown_text(heading.text)); }

  void show(const Paragraph& paragraph) {
    if (paragraph.if_shortened) return;  // nothing is shortened here
    const std::string content = paragraph.content() + paragraph.ending;
    add(paragraph.label.empty() ? markdown_line(content)
                                : "**" + markdown_text(paragraph.label) + "**: " + markdown_text(content));
  }

  void show(const Table& table) {
    if (!table.title.empty()) show(Heading{table.title});
    std::string lines = "|";
    for (const auto& column : table.columns) lines += " " + markdown_text(column.heading) + " |";
    lines += "\n|";
    for (const auto& column : table.columns) lines += column.left ? " :-- |" : " --: |";
    for (const auto& row : table.rows) {
      lines += "\n|";
      for (const auto& cell : row.cells)
        lines += " " + repeated("&nbsp;&nbsp;", cell.level) + markdown_text(cell.text) + " |";
    }
    add(lines);
    for (const auto& remark : table.remarks) add(markdown_line(remark));
  }

  void add(std::string_view block) { text.append(text.empty() ? "" : "\n").append(block).append("\n"); }
};

}  // namespace

std::string Paragraph::content() const { return items.empty() ? text : joined(items, "; "); }

std::string render_text(const Document& document, std::size_t width) {
  TextRenderer renderer(width, label_width(document));
  for (const Block& block : document.blocks) {
    std::visit([&](const auto& shown) { renderer.show(shown); }, block);
    renderer.end(!std::holds_alternative<Paragraph>(block));
  }
  return renderer.take();
}

std::string render_markdown(const Document& document) {
  MarkdownRenderer renderer;
  for (const Block& block : document.blocks) std::visit([&](const auto& shown) { renderer.show(shown); }, block);
  return renderer.text;
}

std::string render_rows(const Table& table, std::size_t width, std::vector<std::string>* dropped) {
  return TextLayout(table).render(width, dropped);
}

}  // namespace roofprof
