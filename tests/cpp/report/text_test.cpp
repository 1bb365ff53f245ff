#include <gtest/gtest.h>

#include <optional>
#include <sstream>

#include "report/document.h"
#include "report/utf8.h"

namespace roofprof {
namespace {

TEST(Utf8, PrintableKeepsALineALineAndShowsThatSomethingIsHidden) {
  EXPECT_EQ(display_width("34µs…\xFF\xFE"), 7U);
  EXPECT_EQ(printable("a\nb\t\xFFµ"), "a b \xEF\xBF\xBDµ");
  EXPECT_EQ(printable("a\u202Eb\u2066c\u0085d"), "a\uFFFDb\uFFFDc d");  // what turns a line around
  EXPECT_EQ(printable("\u2030\u00B5\u2070"), "\u2030\u00B5\u2070");     // what is near them stays
  EXPECT_EQ(printable("a\u200B\u2060\uFEFF\u00AD\U000E0041\uFE00b"), "a\uFFFDb");
  EXPECT_EQ(printable("\u2764\uFE0F\u200D\U0001F525 1\uFE0F\u20E3"), "\u2764\uFE0F\u200D\U0001F525 1\uFE0F\u20E3");
  EXPECT_EQ(printable("a\u200Db\uFE0F"), "a\uFFFDb\uFFFD");
  EXPECT_EQ(printable("e\u0301\u0301\u0301\u0301\u0301\u0301x"), "e\u0301\u0301\u0301\u0301\uFFFDx");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\uFFFD");  // a surrogate
  EXPECT_EQ(printable_lines("a\n\tb\r\u2028c"), "a\n\tb  c");
}

TEST(Utf8, TruncationKeepsBothEnds) {
  EXPECT_EQ(truncate("backbone", 8), "backbone");
  EXPECT_EQ(truncate("backbone", 5), "ba…ne");
  EXPECT_EQ(truncate("backbone", 4), "b…ne");
  EXPECT_EQ(truncate("µµµµ", 3), "µ…µ");
  EXPECT_EQ(truncate("backbone", 1), "…");
  EXPECT_EQ(truncate("backbone", 0), "");
  EXPECT_EQ(truncate("layers.11.attention", 13, Keep::end), "…11.attention");
  EXPECT_EQ(truncate("layers", 6, Keep::end), "layers");
}

Table sample_table() {
  Table table{{{"name", true, 6, 0}, {"first", false, 0, 2}, {"second", false, 0, 1}, {"kind", true, 0, 0}}};
  table.add({{"a long name"}, {"1"}, {"22"}, {"memory DRAM"}});
  table.add_rule();
  table.add({{"total", 1}, {"3"}, {"4"}, {"compute fp32"}});
  return table;
}

TEST(TableAsText, AlignsFiguresThenTruncatesThenDropsTheLeastImportant) {
  EXPECT_EQ(render_rows(sample_table(), 80),
            "name         first  second  kind\n"
            "────────────────────────────────────────\n"
            "a long name      1      22  memory DRAM\n"
            "────────────────────────────────────────\n"
            "  total          3       4  compute fp32\n");
  std::vector<std::string> dropped;
  EXPECT_TRUE(render_rows(sample_table(), 36, &dropped).ends_with("  total      3       4  compute fp32\n"));
  EXPECT_TRUE(dropped.empty());
  EXPECT_TRUE(render_rows(sample_table(), 26, &dropped).starts_with("name   second kind\n"));
  EXPECT_EQ(dropped, std::vector<std::string>{"first"});
  dropped.clear();
  EXPECT_TRUE(render_rows(sample_table(), 1, &dropped).starts_with("name   kind\n"));
  EXPECT_EQ(dropped, (std::vector<std::string>{"first", "second"}));
}

TEST(TableAsText, KeepsLevelsApartAtAnyWidth) {
  Table table{{{"name", true, 6, 0}, {"first", false, 0, 1}}};
  constexpr std::size_t kLevels = 12;
  for (std::size_t level = 0; level < kLevels; ++level) table.add({{"a_name_of_some_length", level}, {"12345"}});
  for (const std::size_t width : {1U, 20U, 30U, 40U, 60U}) {
    std::istringstream lines(render_rows(table, width));
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    std::optional<std::size_t> step;
    for (std::size_t level = 0; std::getline(lines, line); ++level) {
      const std::size_t blanks = line.find_first_not_of(' ');
      if (level == 1) step = blanks;
      EXPECT_EQ(blanks, level * step.value_or(0)) << width << "\n" << line;
      EXPECT_GE(display_width(line), blanks + 10);
    }
    EXPECT_GT(step, 0U) << width;
  }
}

TEST(DocumentAsText, HasEmptyLinesAroundTablesAndHeadings) {
  Document document;
  document.say("first", "one");
  document.say("", "two");
  document.add(Table{.columns = {{"a"}, {"b"}}, .rows = {{{{"1"}, {"2"}}}}, .remarks = {"a remark"}});
  document.say("third", "three");
  document.add(Paragraph{.label = "fourth", .items = {"x: 1", "y: 2"}, .apart = true});
  document.add(Heading{"a heading"});
  document.say("", "four");
  EXPECT_EQ(render_text(document, 0),
            "first     one\n          two\n"
            "\na  b\n────\n1  2\n          a remark\n"
            "\nthird     three\n"
            "\nfourth    x: 1; y: 2\n"
            "\na heading\n"
            "\n          four\n");
}

TEST(DocumentAsText, SaysWhatFoundNoRoom) {
  const auto text_of = [](std::size_t width) {
    Document document;
    document.add(Table{.columns = {{"name"}, {"first", false, 0, 1}, {"second", false, 0, 2}},
                       .rows = {{{{"a"}, {"b"}, {"c"}}}},
                       .if_dropped = "no room for {}"});
    document.add(Paragraph{.text = "it says this in many words, more than one line holds", .most_lines = 1});
    document.add(Paragraph{.text = "see elsewhere", .role = Role::hint, .if_shortened = true});
    return render_text(document, width);
  };
  EXPECT_EQ(text_of(5).substr(0, text_of(5).find("\n\n")), "name\n────\n   a\n          no room for first, second");
  EXPECT_NE(text_of(5).find("          it says this in many words,…\n          see elsewhere\n"), std::string::npos);
  EXPECT_EQ(text_of(0).find("no room"), std::string::npos);
  EXPECT_EQ(text_of(0).find("see elsewhere"), std::string::npos);
}

TEST(DocumentAsText, IsPrintable) {
  Document document;
  document.add(Heading{"a\x1b"});
  document.say("l\n", "b\x1b");
  document.add(Table{.columns = {{"c\x1b"}}, .rows = {{{{"d\x1b"}}}}, .remarks = {"e\x1b"}});
  EXPECT_EQ(render_text(document, 0), "a\n\nl         b\n\nc\n──\nd\n          e\n");
}

TEST(Paragraph, IsShortenedToItsLines) {
  Document document;
  document.add(Paragraph{.label = "label", .text = "one two", .most_lines = 2, .ending = " (end)"});
  document.add(Paragraph{
      .text = "one two three four five six seven eight nine ten eleven twelve", .most_lines = 2, .ending = " (end)"});
  document.add(Paragraph{.text = "one two three four five six seven", .most_lines = 1});
  EXPECT_EQ(render_text(document, 40),
            "label     one two (end)\n"
            "          one two three four five six\n"
            "          seven eight nine ten… (end)\n"
            "          one two three four five six…\n");
}

}  // namespace
}  // namespace roofprof
