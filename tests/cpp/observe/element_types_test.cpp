// Every element type of torch's, through an operator that runs.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "observe/observed.h"

namespace roofprof::observe {
namespace {

using namespace testing;

// What torch's names of them say: the type of a component, by kind and bits; the rest are bits without a meaning.
DType expected(const std::string& name) {
  static const std::map<std::string, DType> by_name = {
      {"Byte", DType::uint8},      {"Char", DType::int8},         {"Short", DType::int16},
      {"Int", DType::int32},       {"Long", DType::int64},        {"Half", DType::fp16},
      {"Float", DType::fp32},      {"Double", DType::fp64},       {"ComplexHalf", DType::fp16},
      {"BComplex32", DType::bf16}, {"ComplexFloat", DType::fp32}, {"ComplexDouble", DType::fp64},
      {"Bool", DType::boolean},    {"QInt8", DType::int8},        {"QUInt8", DType::uint8},
      {"QInt32", DType::int32},    {"BFloat16", DType::bf16},     {"QUInt4x2", DType::int4},
      {"UInt16", DType::int16},    {"UInt32", DType::int32},      {"UInt64", DType::int64},
      {"Int4", DType::int4},       {"UInt4", DType::int4},        {"Float4_e2m1fn_x2", DType::fp4}};
  if (name.starts_with("Float8_")) return DType::fp8;
  const auto found = by_name.find(name);
  return found == by_name.end() ? DType::other : found->second;
}

// Types that torch makes no tensors of.
bool is_made(c10::ScalarType type) {
  try {
    at::empty({1}, at::TensorOptions().dtype(type).device(at::kMeta));
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

TEST(ElementTypes, AreObservedAsTheirNamesSay) {
  int made = 0;
  for (int number = 0; number < static_cast<int>(c10::ScalarType::NumOptions); ++number) {
    const auto type = static_cast<c10::ScalarType>(number);
    if (type == c10::ScalarType::Undefined || c10::isQIntType(type) || !is_made(type)) continue;
    SCOPED_TRACE(c10::toString(type));
    const auto tensor = at::empty({4, 6}, at::TensorOptions().dtype(type).device(at::kMeta));
    const auto pass = observe_in_model([&] { at::cat({tensor, tensor}); });
    ASSERT_FALSE(pass.ops.empty());
    const auto& op = pass.ops.front();
    EXPECT_EQ(op.op, "aten::cat");
    EXPECT_EQ(name_of(op.dtype), name_of(expected(c10::toString(type))));
    // Read once, as it is the same one twice, and written twice.
    const auto bytes = 4 * 6 * static_cast<std::int64_t>(tensor.itemsize());
    EXPECT_EQ(op.work.read_bytes, bytes);
    EXPECT_EQ(op.work.write_bytes, 2 * bytes);
    ++made;
  }
  EXPECT_GT(made, 20);
}

}  // namespace
}  // namespace roofprof::observe
