#pragma once
// Laying out text: columns of a fixed total width, and paragraphs with a label. Knows nothing of what it prints, so it
// makes all of it printable: names come from files, and a terminal would act on what they hold.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/utf8.h"

namespace roofprof {

struct TextColumn {
  std::string heading;
  bool left = false;  // alignment; figures stand right
  // May be truncated down to this, and to two thirds of it before any column is dropped; 0: never truncated.
  std::size_t min_width = 0;
  // Where the table is too wide, the column of the largest rank goes first; rank 0 stays.
  int drop_rank = 0;
  Keep keep = Keep::both_ends;  // of a truncated text
};

struct TextCell {
  TextCell(const std::string& shown, std::size_t at_level = 0) : text(printable(shown)), level(at_level) {}

  std::string text;
  std::size_t level;  // in a tree: how far it is indented
};

class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}

  // One cell for each column.
  void add(std::vector<TextCell> cells) { rows_.push_back(std::move(cells)); }
  // A horizontal line before the next row.
  void add_rule() { rules_.push_back(rows_.size()); }

  // Every line ends in '\n' and has no blanks at its end. What does not fit `width` is made to, in this order:
  // truncation, narrow gaps, harder truncation, narrow indentation, dropped columns, whose headings go to `dropped`.
  // Levels of a tree stay apart. Wider than `width` only where the columns that must stay need more.
  std::string render(std::size_t width, std::vector<std::string>* dropped = nullptr) const;

 private:
  struct Layout;
  std::vector<std::size_t> natural_widths(std::size_t indent) const;
  // What a column needs at least if it may be truncated to so many thirds of its least width; 0: it may not be.
  std::size_t least_width(std::size_t column, std::size_t thirds, std::size_t indent) const;
  Layout fit(std::size_t width) const;
  std::vector<TextColumn> columns_;
  std::vector<std::vector<TextCell>> rows_;
  std::vector<std::size_t> rules_;
};

// "label     text text text", wrapped at `width`, later lines indented below the text.
std::string labelled_paragraph(std::string_view label, std::string_view text, std::size_t width);

// Of one line of it, label and text.
std::pair<std::string, std::string> split_paragraph(std::string_view line);

struct ShortenedParagraph {
  std::string text;
  bool whole = true;  // nothing was left out
};

// The same in at most so many lines: words before `ending` give way to "…".
ShortenedParagraph shortened_paragraph(std::string_view label, std::string_view text, std::string_view ending,
                                       std::size_t width, std::size_t lines);

}  // namespace roofprof
