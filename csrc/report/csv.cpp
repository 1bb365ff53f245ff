// The rows of a report as CSV (RFC 4180), one line for each and none for the total, so that the self columns add up to
// it. The header carries the units in its names; an empty cell is an unknown figure.

#include <algorithm>
#include <array>
#include <string_view>

#include "core/fields.h"
#include "core/json/file.h"
#include "core/json/writer.h"
#include "core/profile.h"
#include "core/shapes.h"
#include "report/rows_by.h"
#include "report/units.h"

namespace roofprof {

namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char character : text) {
    if (character == '"') result += '"';
    result += character;
  }
  return result + '"';
}

// A spreadsheet takes a text that begins like a formula for one, and runs it, but not behind an apostrophe. In Japanese
// and Chinese settings the wide forms of these signs are the same. An apostrophe goes before an apostrophe, too, so
// that a reader who takes the first one away has the text again.
std::string cell(const std::string& text) {
  constexpr std::array<std::string_view, 12> kNoText = {"=",  "+", "-",      "@",      "\t",     "\r",
                                                        "\n", "'", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"};
  return quoted(std::ranges::any_of(kNoText, [&](auto sign) { return text.starts_with(sign); }) ? "'" + text : text);
}
std::string cell(bool value) { return value ? "true" : "false"; }
std::string cell(std::int64_t value) { return std::to_string(value); }
std::string cell(double value) {
  const std::string text = json_number(value);
  return text == "null" ? std::string() : text;
}
std::string cell(const std::array<std::int32_t, 3>& blocks) { return blocks_text(blocks); }
std::string cell(const Bound& bound) { return cell(to_string(bound)); }
std::string cell(const std::array<std::int64_t, kDTypeCount>& counts) { return by_dtype_text(counts); }
std::string cell(const std::vector<Shape>& shapes) { return quoted(shapes_text(shapes)); }
template <class Value>
std::string cell(const std::optional<Value>& value) {
  return value ? cell(*value) : std::string();
}

class Line {
 public:
  void add(const std::string& text) {
    if (!first_) text_ += ',';
    first_ = false;
    text_ += text;
  }
  std::string take() { return std::move(text_) + "\r\n"; }

 private:
  std::string text_;
  bool first_ = true;
};

template <class Row>
std::string csv_of(const std::vector<Row>& rows, std::string_view by) {
  constexpr bool kHasKeys = std::is_same_v<Row, GroupRow>;
  Line header;
  if constexpr (kHasKeys) {
    for (const auto& key : split_keys(by)) header.add(key);
  }
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto) { header.add(info.key_in(of_self)); });
  std::string text = header.take();
  for (const Row& row : rows) {
    Line line;
    if constexpr (kHasKeys) {
      for (const auto& key : row.keys) line.add(cell(key));
    }
    for_each_field<Row>([&](const FigureInfo&, bool, auto value_of) { line.add(cell(value_of(row))); });
    text += line.take();
  }
  return text;
}

}  // namespace

std::string Report::to_csv(const ByText& by) const {
  return visit_rows(*this, by, [&](const auto& rows) { return csv_of(rows, by); });
}

void Report::write_csv(const std::string& path, const ByText& by) const { write_whole_file(path, to_csv(by)); }

}  // namespace roofprof
