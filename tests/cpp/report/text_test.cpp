#include <gtest/gtest.h>

#include <optional>
#include <sstream>

#include "report/text_table.h"
#include "report/utf8.h"

namespace roofprof {
namespace {

TEST(Utf8, WidthCountsCodePoints) {
  EXPECT_EQ(display_width("34µs…"), 5U);
  EXPECT_EQ(display_width("\xFF\xFE"), 2U);
}

TEST(Utf8, PrintableKeepsALineALine) { EXPECT_EQ(printable("a\nb\t\xFFµ"), "a b \xEF\xBF\xBDµ"); }

TEST(Utf8, PrintableTurnsNoLineAround) {
  EXPECT_EQ(printable("a\u202Eb\u2066c\u0085d"), "a b c d");
  EXPECT_EQ(printable("\u2030\u00B5\u2070"), "\u2030\u00B5\u2070");  // what is near them stays
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

TextTable sample_table() {
  TextTable table({{"name", true, 6, 0}, {"first", false, 0, 2}, {"second", false, 0, 1}, {"kind", true, 0, 0}});
  table.add({{"a long name"}, {"1"}, {"22"}, {"memory DRAM"}});
  table.add_rule();
  table.add({{"total", 1}, {"3"}, {"4"}, {"compute fp32"}});
  return table;
}

TEST(TextTable, AlignsFiguresRightAndTextLeft) {
  EXPECT_EQ(sample_table().render(80),
            "name         first  second  kind\n"
            "────────────────────────────────────────\n"
            "a long name      1      22  memory DRAM\n"
            "────────────────────────────────────────\n"
            "  total          3       4  compute fp32\n");
}

TEST(TextTable, TruncatesFirst) {
  std::vector<std::string> dropped;
  EXPECT_EQ(sample_table().render(36, &dropped),
            "name     first  second  kind\n"
            "────────────────────────────────────\n"
            "a l…ame      1      22  memory DRAM\n"
            "────────────────────────────────────\n"
            "  total      3       4  compute fp32\n");
  EXPECT_TRUE(dropped.empty());
}

TEST(TextTable, ThenNarrowsGapsAndDropsTheLeastImportant) {
  std::vector<std::string> dropped;
  const std::string text = sample_table().render(26, &dropped);
  EXPECT_EQ(dropped, std::vector<std::string>{"first"});
  EXPECT_EQ(text.substr(0, text.find('\n')), "name   second kind");
}

TEST(TextTable, NeverDropsWhatMustStay) {
  std::vector<std::string> dropped;
  const std::string text = sample_table().render(1, &dropped);
  EXPECT_EQ(dropped, (std::vector<std::string>{"first", "second"}));
  EXPECT_NE(text.find("name   kind"), std::string::npos) << text;
}

TEST(TextTable, KeepsLevelsApartAtAnyWidth) {
  TextTable table({{"name", true, 6, 0}, {"first", false, 0, 1}});
  constexpr std::size_t kLevels = 12;
  for (std::size_t level = 0; level < kLevels; ++level) table.add({{"a_name_of_some_length", level}, {"12345"}});
  for (const std::size_t width : {1U, 20U, 30U, 40U, 60U}) {
    std::istringstream lines(table.render(width));
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

TEST(Paragraph, WrapsBelowItsText) {
  EXPECT_EQ(labelled_paragraph("label", "one two three", 19),
            "label     one two\n"
            "          three\n");
  EXPECT_EQ(labelled_paragraph("", "a_word_longer_than_the_line x", 14),
            "          a_word_longer_than_the_line\n"
            "          x\n");
}

TEST(Paragraph, IsShortenedToItsLines) {
  const auto whole = shortened_paragraph("label", "one two", " (end)", 30, 2);
  EXPECT_EQ(whole.text, "label     one two (end)\n");
  EXPECT_TRUE(whole.whole);
  const auto cut = shortened_paragraph("label", "one two three four five six seven", " (end)", 22, 2);
  EXPECT_EQ(cut.text,
            "label     one two\n"
            "          three… (end)\n");
  EXPECT_FALSE(cut.whole);
  EXPECT_EQ(shortened_paragraph("", "one two three", "", 11, 2).text, "          one\n          two…\n");
}

}  // namespace
}  // namespace roofprof
