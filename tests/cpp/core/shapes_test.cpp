// The sizes of tensors as text, and that text read.

#include "core/shapes.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roofprof {
namespace {

TEST(Shapes, AreTextWhereTheyArePrinted) {
  EXPECT_EQ(shapes_text(std::vector<Shape>{{1, 3, 224, 224}, {64}, {}}), "1x3x224x224, 64, ()");
  EXPECT_EQ(shapes_text(std::vector<Shape>()), "");
  EXPECT_EQ(shapes_text(OpShapes{{{8, 256}, {2, kUnknownSize, 0}, {}}}), "8x256, 2x*x0, scalar");
  EXPECT_EQ(shapes_text(OpShapes()), "");
  EXPECT_EQ(shapes_text(OpShapes{{}, true}), "other shapes");
}

// "1000, " has six characters: behind the 34th of these more than 200 stand.
TEST(Shapes, ALongTextIsCutOffBetweenTwoShapes) {
  std::string all = "1000";
  OpShapes shapes{{{1000}}};
  while (shapes.tensors.size() < 34) {
    shapes.tensors.push_back({1000});
    all += ", 1000";
  }
  EXPECT_EQ(shapes_text(shapes), all);
  shapes.tensors.resize(40, {1000});
  EXPECT_EQ(shapes_text(shapes), all + ", ...");
  EXPECT_EQ(shapes_text(shapes.tensors).size(), 40 * 4 + 39 * 2);  // what a row of a module has is whole
}

TEST(ShapesInText, AreThoseOfSchemaVersion5) {
  EXPECT_EQ(shapes_in_text("1x3x224x224, 64x3x7x7"), (OpShapes{{{1, 3, 224, 224}, {64, 3, 7, 7}}}));
  EXPECT_EQ(shapes_in_text("scalar, 2x*x0, 1000"), (OpShapes{{{}, {2, kUnknownSize, 0}, {1000}}}));
  EXPECT_EQ(shapes_in_text("3072x1024, 3072, ..."), (OpShapes{{{3072, 1024}, {3072}}}));
  EXPECT_EQ(shapes_in_text("other shapes"), (OpShapes{{}, true}));
  EXPECT_EQ(shapes_in_text(""), OpShapes());
  for (const std::string_view text :
       {"2x", "2xx3", "2x3,4", "-1", " 2", "2x3, , 5", "others", "99999999999999999999"}) {
    EXPECT_EQ(shapes_in_text(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace roofprof
