#include "observe/operators/element_type.h"

namespace roofprof::observe {

DType dtype_of(c10::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case c10::ScalarType::Double:
      return DType::fp64;
    case c10::ScalarType::Float:
      return DType::fp32;
    case c10::ScalarType::Half:
      return DType::fp16;
    case c10::ScalarType::BFloat16:
      return DType::bf16;
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e4m3fnuz:
    case c10::ScalarType::Float8_e5m2:
    case c10::ScalarType::Float8_e5m2fnuz:
    case c10::ScalarType::Float8_e8m0fnu:
      return DType::fp8;
    case c10::ScalarType::Float4_e2m1fn_x2:
      return DType::fp4;
    case c10::ScalarType::Long:
    case c10::ScalarType::UInt64:
      return DType::int64;
    case c10::ScalarType::Int:
    case c10::ScalarType::UInt32:
    case c10::ScalarType::QInt32:
      return DType::int32;
    case c10::ScalarType::Short:
    case c10::ScalarType::UInt16:
      return DType::int16;
    case c10::ScalarType::Char:
    case c10::ScalarType::QInt8:
      return DType::int8;
    case c10::ScalarType::Byte:
    case c10::ScalarType::QUInt8:
      return DType::uint8;
    case c10::ScalarType::Int4:
    case c10::ScalarType::UInt4:
    case c10::ScalarType::QUInt4x2:
      return DType::int4;
    case c10::ScalarType::Bool:
      return DType::boolean;
    default:
      return DType::other;
  }
}

}  // namespace roofprof::observe
