#pragma once
// A Document is the data that is shown: headings, paragraphs and tables of cells. Reports and the results of Python
// code build one; text, pages and notebooks render it. All texts are made printable, because names come from files and
// a terminal would act on what they hold.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/utf8.h"

namespace roofprof {

struct TableColumn {
  std::string heading = {};
  bool left = false;  // alignment; figures stand right
  // May be truncated down to this, to two thirds of it before any column is dropped, and to one third where none is
  // left to drop; 0: never truncated.
  std::size_t min_width = 0;
  // If the table is too wide, the column of the largest rank goes first; rank 0 stays.
  int drop_rank = 0;
  Keep keep = Keep::both_ends;  // of a truncated text
  std::string figure = {};      // its name in the table of figures; empty: it shows none
};

struct Cell {
  Cell(const std::string& shown, std::size_t at_level = 0) : text(printable(shown)), level(at_level) {}
  Cell(const std::string& shown, std::optional<double> number, std::string_view sign)
      : text(printable(shown)), value(number), mark(sign) {}

  std::string text;             // with the mark, where it is a sign
  std::size_t level = 0;        // in a tree: how far it is indented
  std::optional<double> value;  // of a number, in the unit of its figure; empty: not known, or text
  std::string mark;             // what sort of value it is: ">=", "<=", "~", "*", or a word that pages colour by
};

struct TableRow {
  std::vector<Cell> cells = {};
  std::string mark = {};  // "total", or a word that pages colour by
};

struct Table {
  std::vector<TableColumn> columns = {};
  std::string title = {};  // of a page, where a table stands by itself; text shows none
  std::vector<TableRow> rows = {};
  std::vector<std::size_t> rules = {};    // a line stands before each of these rows
  std::vector<std::string> remarks = {};  // right below it: what it leaves out
  std::string if_dropped = {};            // a remark where columns found no room; "{}" stands for their headings

  // One cell for each column.
  void add(std::vector<Cell> cells, std::string mark = "") { rows.push_back({std::move(cells), std::move(mark)}); }
  // A horizontal line before the next row.
  void add_rule() { rules.push_back(rows.size()); }
};

struct Heading {
  std::string text;
};

// A title says what the document is about, a warning must be read first; a hint says how to see more, as the reader of
// a text would; a note is one of the report's, which pages list in full.
enum class Role : std::uint8_t { statement, title, warning, note, hint };
inline constexpr std::array<std::string_view, 5> kRoleNames = {"statement", "title", "warning", "note", "hint"};

struct Paragraph {
  std::string label = {};  // empty: it goes on with the one before
  std::string text = {};
  std::vector<std::string> items = {};  // a list in place of the text: "first; second"
  Role role = Role::statement;
  bool apart = false;          // an empty line stands before it
  std::size_t most_lines = 0;  // of text, where words before `ending` give way to "…"; 0: as many as it takes
  std::string ending = {};
  bool if_shortened = false;  // it stands only where paragraphs before it were shortened, or have an ending

  std::string content() const;  // the text, or the items
};

using Block = std::variant<Heading, Paragraph, Table>;

struct Document {
  std::vector<Block> blocks = {};

  void add(Block block) { blocks.push_back(std::move(block)); }
  void say(std::string label, std::string text) { add(Paragraph{std::move(label), std::move(text)}); }
  void add_title(std::string text) { add(Paragraph{"roofprof", std::move(text), {}, Role::title}); }
};

// Every line ends in '\n'. Tables and headings have an empty line around them. A width of 0 is as much as it takes; of
// a paragraph it is 40 at least.
std::string render_text(const Document& document, std::size_t width);

// Returns the document as GitHub's Markdown: a heading of the third level for each heading and title, a table for each
// table, a line for each paragraph.
std::string render_markdown(const Document& document);

// Every line ends in '\n' and has no blanks at its end. What does not fit `width` is made to, in this order:
// truncation, narrow gaps, harder truncation, narrow indentation, dropped columns, whose headings go to `dropped`.
// Levels of a tree stay apart. Wider than `width` only where the columns that must stay need more. Remarks are not in
// it.
std::string render_rows(const Table& table, std::size_t width, std::vector<std::string>* dropped = nullptr);

}  // namespace roofprof
