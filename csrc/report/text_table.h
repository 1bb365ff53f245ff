#pragma once
// Laying out text: columns of a fixed total width, and paragraphs with a label. Knows nothing of what it prints.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roofprof {

struct TextColumn {
  std::string heading;
  bool left = false;  // alignment; figures stand right
  // May be truncated down to this, and to two thirds of it before any column is dropped; 0: never truncated.
  std::size_t min_width = 0;
  // Where the table is too wide, the column of the largest rank goes first; rank 0 stays.
  int drop_rank = 0;
};

struct TextCell {
  TextCell(std::string shown, std::size_t indented = 0, std::string shorter = {})
      : text(std::move(shown)), indent(indented), brief(std::move(shorter)) {}

  std::string text;
  std::size_t indent;
  std::string brief;  // the same in fewer characters, for all rows where the table is too wide; empty: the same
};

class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}

  // One cell for each column.
  void add(std::vector<TextCell> cells) { rows_.push_back(std::move(cells)); }
  // A horizontal line before the next row.
  void add_rule() { rules_.push_back(rows_.size()); }

  // Every line ends in '\n' and has no blanks at its end. What does not fit `width` is made to, in this order: brief
  // texts, truncation, narrow gaps, harder truncation, dropped columns, whose headings go to `dropped`. Wider than
  // `width` only where the columns that must stay need more.
  std::string render(std::size_t width, std::vector<std::string>* dropped = nullptr) const;

 private:
  std::vector<std::size_t> natural_widths(bool brief) const;
  std::vector<TextColumn> columns_;
  std::vector<std::vector<TextCell>> rows_;
  std::vector<std::size_t> rules_;
};

// "label     text text text", wrapped at `width`, later lines indented below the text.
std::string labelled_paragraph(std::string_view label, std::string_view text, std::size_t width);

}  // namespace roofprof
