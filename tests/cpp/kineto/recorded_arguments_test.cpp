// The arguments of calls, and the element types of lists, from what traces say of them.

#include "kineto/recorded_arguments.h"

#include <gtest/gtest.h>

#include "kineto/trace_builder.h"

namespace roofprof::kineto {
namespace {

using testing::TraceText;
using Kind = RecordedArgument::Kind;
using Sizes = std::vector<std::int64_t>;

RecordedCall call(const std::string& sizes, const std::string& types, const std::string& strides = "",
                  const std::string& scalars = "") {
  RecordedCall result;
  result.op = "aten::op";
  result.described = true;
  result.sizes = sizes;
  result.types = types;
  result.strides = strides;
  result.scalars = scalars;
  result.list_type = "c10::Half";
  return result;
}

TEST(RecordedArguments, TensorsListsAndValues) {
  const auto arguments = arguments_of(call(
      R"([[2, 3], [[4], [5, 6]], [], [], [], []])", R"(["float", "TensorList", "Scalar", "ScalarList", "", "double"])",
      R"([[1, 2], [[1], [6, 1]], [], [], [], []])", R"(["", "", "-1", "[1, 1]", "", ""])"));
  ASSERT_EQ(arguments.size(), 6);
  EXPECT_EQ(arguments[0].kind, Kind::tensor);
  EXPECT_EQ(arguments[0].tensors[0].type, "float");
  EXPECT_EQ(arguments[0].tensors[0].sizes, (Sizes{2, 3}));
  EXPECT_EQ(arguments[0].tensors[0].strides, (Sizes{1, 2}));
  ASSERT_EQ(arguments[1].kind, Kind::tensor_list);
  ASSERT_EQ(arguments[1].tensors.size(), 2);
  EXPECT_EQ(arguments[1].tensors[1].type, "c10::Half");
  EXPECT_EQ(arguments[1].tensors[1].strides, (Sizes{6, 1}));
  EXPECT_EQ(arguments[2].kind, Kind::other);
  EXPECT_EQ(arguments[2].value, "-1");
  EXPECT_EQ(arguments[3].value, "[1, 1]");
  EXPECT_EQ(arguments[4].kind, Kind::absent);
  EXPECT_EQ(arguments[5].kind, Kind::tensor);  // of no dimensions
  EXPECT_TRUE(arguments[5].tensors[0].sizes.empty());
}

// What contradicts itself is not there: torch trusts the sizes and strides that it is given.
TEST(RecordedArguments, WhatDoesNotFitIsAbsent) {
  const auto kind = [](const std::string& type, const std::string& sizes, const std::string& strides = "") {
    return arguments_of(call("[" + sizes + "]", "[\"" + type + "\"]", "[" + strides + "]")).at(0).kind;
  };
  EXPECT_EQ(kind("float", "[2, 3]", "[3, 1]"), Kind::tensor);
  EXPECT_EQ(kind("float", "[2, 3]", "[]"), Kind::tensor);
  const std::pair<std::string, std::string> damaged[] = {
      {"[2, 3]", "[1]"},     {"[]", "[9, 3, 1]"},     {"[2, 3]", "[-3, 1]"},
      {"[-2, 3]", "[3, 1]"}, {"[2, null]", "[3, 1]"}, {"[2, 99999999999999999999]", "[3, 1]"}};
  for (const auto& [sizes, strides] : damaged)
    EXPECT_EQ(kind("float", sizes, strides), Kind::absent) << sizes << strides;
  // A list that lacks one of its tensors would be costed for less than it did.
  EXPECT_EQ(kind("TensorList", "[[2, 3], [4]]"), Kind::tensor_list);
  for (const auto* sizes : {"[[2, 3], [-4]]", "[[2, 3], [null]]", "[[2, 3], [[4]]]"})
    EXPECT_EQ(kind("TensorList", sizes), Kind::absent) << sizes;
}

std::string cat(const std::string& sizes) {
  return R"("Input Dims": [)" + sizes + R"(, []], "Input type": ["TensorList", "Scalar"])";
}
std::string tensor(const std::string& sizes, const std::string& type) {
  return R"("Input Dims": [)" + sizes + R"(], "Input type": [")" + type + R"("])";
}

std::string list_type_of(const TraceText& text) {
  auto trace = text.trace();
  find_list_types(trace);
  for (const auto& call : trace.calls) {
    if (call.op == "aten::cat") return call.list_type;
  }
  return "no list";
}

TEST(ListTypes, TheNearestTensorOfThatSizeTellsIt) {
  EXPECT_EQ(list_type_of(TraceText()
                             .event("cpu_op", "aten::a", 0, 1, tensor("[2, 3]", "float"))
                             .event("cpu_op", "aten::b", 2, 1, tensor("[2, 3]", "c10::BFloat16"))
                             .event("cpu_op", "aten::cat", 4, 1, cat("[[2, 3], [9, 9]]"))
                             .event("cpu_op", "aten::c", 6, 1, tensor("[7]", "double"))),
            "c10::BFloat16");
}

// Of other threads nothing is asked; the type that most tensors of the trace have will do.
TEST(ListTypes, ElseTheUsualFloatingType) {
  EXPECT_EQ(list_type_of(TraceText()
                             .event("cpu_op", "aten::a", 0, 1, tensor("[2, 3]", "double"), "2")
                             .event("cpu_op", "aten::b", 2, 1, tensor("[5]", "c10::Half"))
                             .event("cpu_op", "aten::b", 2, 1, tensor("[6]", "c10::Half"))
                             .event("cpu_op", "aten::c", 3, 1, tensor("[6]", "long int"))
                             .event("cpu_op", "aten::cat", 4, 1, cat("[[2, 3]]"))),
            "c10::Half");
  EXPECT_EQ(list_type_of(TraceText().event("cpu_op", "aten::cat", 4, 1, cat("[[2, 3]]"))), "");
}

}  // namespace
}  // namespace roofprof::kineto
