#pragma once
// Rows as JSON, by the lists of core/fields.h.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/fields.h"
#include "core/json/members.h"

namespace roofprof {

// Selects the fields that any row knows. So every row of a report has the same keys.
class KnownFields {
 public:
  template <class Row, class Member>
  void look_at(std::size_t index, const Row& row, Member member) {
    if (index >= known_.size()) known_.resize(index + 1);
    if (!known_[index]) known_[index] = is_known(std::invoke(member, row));
  }
  bool operator[](std::size_t index) const { return index < known_.size() && known_[index]; }

 private:
  template <class Value>
  static bool is_known(const Value&) {
    return true;
  }
  template <class Value>
  static bool is_known(const std::optional<Value>& value) {
    return value.has_value();
  }

  std::vector<bool> known_;
};

// A visitor for the lists of core/fields.h that looks at each field of a row.
template <class Object>
auto field_finder(KnownFields& known, const Object& object) {
  return [&known, &object, index = std::size_t{0}](std::string_view, Unit, auto member) mutable {
    known.look_at(index++, object, member);
  };
}

// A visitor that writes each known field under its key.
template <class Object>
auto field_writer(JsonWriter& json, const KnownFields& known, const Object& object, const std::string& prefix) {
  return
      [&json, &known, &object, prefix, index = std::size_t{0}](std::string_view name, Unit unit, auto member) mutable {
        if (!known[index++]) return;
        json.key(prefix + key_of(name, unit));
        const auto& value = std::invoke(member, object);
        if constexpr (std::is_same_v<decltype(value), const Bound&>) {
          json.write(to_string(value));
        } else {
          write_value(json, value);
        }
      };
}

}  // namespace roofprof
