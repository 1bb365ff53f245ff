#include <gtest/gtest.h>

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

TEST(Utf8, TruncationKeepsBothEnds) {
  EXPECT_EQ(truncate_middle("backbone", 8), "backbone");
  EXPECT_EQ(truncate_middle("backbone", 5), "ba…ne");
  EXPECT_EQ(truncate_middle("backbone", 4), "b…ne");
  EXPECT_EQ(truncate_middle("µµµµ", 3), "µ…µ");
  EXPECT_EQ(truncate_middle("backbone", 1), "…");
  EXPECT_EQ(truncate_middle("backbone", 0), "");
}

TextTable sample_table() {
  TextTable table({{"name", true, 6, 0}, {"first", false, 0, 2}, {"second", false, 0, 1}, {"kind", true, 0, 0}});
  table.add({{"a long name"}, {"1"}, {"22"}, {"memory DRAM", 0, "DRAM"}});
  table.add_rule();
  table.add({{"total", 2}, {"3"}, {"4"}, {"compute fp32", 0, "fp32"}});
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

TEST(TextTable, TakesBriefTextsFirst) {
  std::vector<std::string> dropped;
  EXPECT_EQ(sample_table().render(32, &dropped),
            "name         first  second  kind\n"
            "────────────────────────────────\n"
            "a long name      1      22  DRAM\n"
            "────────────────────────────────\n"
            "  total          3       4  fp32\n");
  EXPECT_TRUE(dropped.empty());
}

TEST(TextTable, ThenTruncates) {
  EXPECT_EQ(sample_table().render(28),
            "name     first  second  kind\n"
            "────────────────────────────\n"
            "a l…ame      1      22  DRAM\n"
            "────────────────────────────\n"
            "  total      3       4  fp32\n");
}

TEST(TextTable, ThenNarrowsGapsAndDropsTheLeastImportant) {
  std::vector<std::string> dropped;
  const std::string text = sample_table().render(18, &dropped);
  EXPECT_EQ(dropped, std::vector<std::string>{"first"});
  EXPECT_EQ(text.substr(0, text.find('\n')), "name   second kind");
}

TEST(TextTable, NeverDropsWhatMustStay) {
  std::vector<std::string> dropped;
  const std::string text = sample_table().render(1, &dropped);
  EXPECT_EQ(dropped, (std::vector<std::string>{"first", "second"}));
  EXPECT_NE(text.find("name kind"), std::string::npos) << text;
}

TEST(Paragraph, WrapsBelowItsText) {
  EXPECT_EQ(labelled_paragraph("label", "one two three", 19),
            "label     one two\n"
            "          three\n");
  EXPECT_EQ(labelled_paragraph("", "a_word_longer_than_the_line x", 14),
            "          a_word_longer_than_the_line\n"
            "          x\n");
}

}  // namespace
}  // namespace roofprof
