#pragma once
// The fields of core/fields.h as members of a JSON object.

#include <string>
#include <type_traits>

#include "core/fields.h"
#include "report/json_writer.h"

namespace roofprof {

using ByDType = std::array<std::int64_t, kDTypeCount>;

inline void write_by_dtype(JsonWriter& json, const ByDType& counts) {
  json.begin_object();
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (counts[i] != 0) json.member(kDTypeNames[i], counts[i]);
  }
  json.end_object();
}

inline void write_blocks(JsonWriter& json, const std::array<std::int32_t, 3>& blocks) {
  json.begin_array();
  for (const auto count : blocks) json.write(count);
  json.end_array();
}

// Writes each field of the lists in core/fields.h under its key.
template <class Object>
auto field_writer(JsonWriter& json, const Object& object, const std::string& prefix) {
  return [&json, &object, prefix](std::string_view name, Unit unit, auto member) {
    json.key(prefix + key_of(name, unit));
    const auto& value = object.*member;
    if constexpr (std::is_same_v<decltype(value), const Bound&>) {
      json.write(to_string(value));
    } else if constexpr (std::is_same_v<decltype(value), const ByDType&>) {
      write_by_dtype(json, value);
    } else if constexpr (std::is_same_v<decltype(value), const std::array<std::int32_t, 3>&>) {
      write_blocks(json, value);
    } else {
      json.write(value);
    }
  };
}

}  // namespace roofprof
