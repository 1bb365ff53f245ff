#pragma once
// The element types in which work is counted.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "roofprof/version.h"

namespace roofprof {

// Order matters: floating-point types first, then integers (see is_floating).
enum class DType : std::uint8_t {
  fp64,
  fp32,
  tf32,
  fp16,
  bf16,
  fp8,
  fp4,
  int64,
  int32,
  int16,
  int8,
  uint8,
  int4,
  boolean,
  other
};

inline constexpr std::size_t kDTypeCount = 15;

inline constexpr std::array<std::string_view, kDTypeCount> kDTypeNames = {"fp64", "fp32",  "tf32",  "fp16",  "bf16",
                                                                          "fp8",  "fp4",   "int64", "int32", "int16",
                                                                          "int8", "uint8", "int4",  "bool",  "other"};

[[nodiscard]] constexpr std::string_view name_of(DType dtype) { return kDTypeNames[static_cast<std::size_t>(dtype)]; }

// Work in floating-point types is FLOPs; in all others it is integer operations.
[[nodiscard]] constexpr bool is_floating(DType dtype) { return dtype <= DType::fp4; }

// Returns the dtype of that name; DType::other for names that are not known.
[[nodiscard]] constexpr DType dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (kDTypeNames[i] == name) return static_cast<DType>(i);
  }
  return DType::other;
}

}  // namespace roofprof
