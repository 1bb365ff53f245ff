#pragma once
// Observed data as JSON, in both directions, by the member lists of core/members.h.

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <concepts>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/json/reader.h"
#include "core/json/writer.h"
#include "core/members.h"

namespace roofprof {

namespace json_detail {

template <class Value>
inline constexpr bool is_vector = false;
template <class Item>
inline constexpr bool is_vector<std::vector<Item>> = true;
template <class Value>
inline constexpr bool is_array = false;
template <class Item, std::size_t N>
inline constexpr bool is_array<std::array<Item, N>> = true;
template <class Value>
inline constexpr bool is_optional = false;
template <class Item>
inline constexpr bool is_optional<std::optional<Item>> = true;
// An optional struct that is written has a value, because an empty one is the default.
template <class Value>
inline constexpr bool is_optional_struct = false;
template <HasMembers Item>
inline constexpr bool is_optional_struct<std::optional<Item>> = true;
template <class Value>
inline constexpr bool is_map_by_name = false;
template <class Item, class Less>
inline constexpr bool is_map_by_name<std::map<std::string, Item, Less>> = true;
// An object whose keys keep their order.
template <class Value>
inline constexpr bool is_list_by_name = false;
template <class Item>
inline constexpr bool is_list_by_name<std::vector<std::pair<std::string, Item>>> = true;
template <class Value>
inline constexpr bool has_element_names = !ElementNames<Value>::names.empty();

// Returns whether an element of an array with names is written: zero and unknown values are left out.
inline bool is_there(std::int64_t count) { return count != 0; }
inline bool is_there(const std::optional<double>& value) { return value && std::isfinite(*value); }

template <class Value>
inline constexpr bool is_list_of_structs = false;
template <HasMembers Item>
inline constexpr bool is_list_of_structs<std::vector<Item>> = true;

// A key that says where a profile's figures come from.
template <class Value>
concept HasText = requires(const Value& key) { key.set(key.text()); };
template <class Value>
concept HasKind = requires(const Value& key) { key.set(*key.get()); };
template <class Value>
concept HasFlag = requires(const Value& key) {
  { key.there() } -> std::same_as<bool>;
};
// A member of a part that a profile may lack.
template <class Value>
concept IsInMaybe = requires { typename Value::Value; };
// A report in a report: it has what its own is made of, without what follows from that.
template <class Value>
concept IsKept = std::same_as<Value, std::shared_ptr<const Profile>>;

template <class Struct>
std::vector<std::string> member_names() {
  std::vector<std::string> names;
  for_each_member(Of<Struct>{}, [&](std::string_view name, auto, Written) { names.emplace_back(name); });
  return names;
}

template <class Names>
std::size_t index_in(const Names& names, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

}  // namespace json_detail

// ---- written

template <class Value>
void write_value(JsonWriter& json, const Value& value);

// The members of `object`, into the JSON object that is open.
template <class Struct>
void write_members(JsonWriter& json, const Struct& object) {
  [[maybe_unused]] static const Struct kDefault{};
  for_each_member(Of<Struct>{}, [&](std::string_view name, auto member, Written when) {
    const auto& value = std::invoke(member, object);
    if (when == Written::unless_default && value == std::invoke(member, kDefault)) return;
    json.key(name);
    write_value(json, value);
  });
}

template <class Row>
void write_table(JsonWriter& json, const std::vector<Row>& rows) {
  json.begin_object();
  json.member("columns", json_detail::member_names<Row>());
  json.key("rows");
  json.begin_array();
  for (const Row& row : rows) {
    json.break_line();
    json.begin_array();
    for_each_member(Of<Row>{},
                    [&](std::string_view, auto member, Written) { write_value(json, std::invoke(member, row)); });
    json.end_array();
  }
  json.end_array();
  json.end_object();
}

template <class Value>
void write_value(JsonWriter& json, const Value& value) {
  using namespace json_detail;
  if constexpr (HasMembers<Value>) {
    json.begin_object();
    write_members(json, value);
    json.end_object();
  } else if constexpr (is_optional_struct<Value>) {
    if (value) write_value(json, *value);
  } else if constexpr (HasText<Value>) {
    json.write(value.text());
  } else if constexpr (HasKind<Value>) {
    if (value.get() != nullptr) write_value(json, *value.get());
  } else if constexpr (std::same_as<Value, OpShapes>) {
    value.others ? json.write_null() : json.write(value.tensors);
  } else if constexpr (HasFlag<Value>) {
    json.write(value.there());
  } else if constexpr (IsKept<Value>) {
    json.begin_object();
    json.member("schema_version", kReportSchemaVersion);
    write_members(json, *value);
    json.end_object();
  } else if constexpr (std::is_enum_v<Value>) {
    json.write(names_of_enum<Value>.at(static_cast<std::size_t>(value)));
  } else if constexpr (std::same_as<Value, Environment>) {
    json.begin_object();
    for (const auto& [name, fact] : value) {
      json.key(name);
      std::visit([&](const auto& known) { json.write(known); }, fact);
    }
    json.end_object();
  } else if constexpr (has_element_names<Value>) {
    json.begin_object();
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (is_there(value[i])) json.member(ElementNames<Value>::names[i], value[i]);
    }
    json.end_object();
  } else if constexpr ((is_vector<Value> || is_array<Value>) && !std::same_as<Value, std::vector<Shape>>) {
    using Item = typename Value::value_type;
    if constexpr (is_table_row<Item>) {
      write_table(json, value);
    } else {
      json.begin_array();
      for (const auto& item : value) {
        if constexpr (HasMembers<Item> && !is_inside_line<Item>) json.break_line();
        write_value(json, item);
      }
      if (HasMembers<Item> && !is_inside_line<Item> && !value.empty()) json.break_line();
      json.end_array();
    }
  } else if constexpr (is_optional<Value>) {
    value ? write_value(json, *value) : json.write_null();
  } else {
    json.write(value);
  }
}

// ---- read

template <class Value>
void read_value(JsonReader& json, Value& to);

template <class Struct>
void read_members(JsonReader& json, Struct& to) {
  std::bitset<64> seen;
  json.begin_object();
  while (const auto key = json.next_key()) {
    bool is_member = false;
    std::size_t index = 0;
    for_each_member(Of<Struct>{}, [&](std::string_view name, auto member, Written) {
      const std::size_t at = index++;
      if (is_member || name != *key) return;
      is_member = true;
      if (seen.test(at)) json.refuse("is there twice");
      seen.set(at);
      auto&& value = std::invoke(member, to);
      read_value(json, value);
    });
    if (!is_member) json.skip();
  }
  std::size_t index = 0;
  for_each_member(Of<Struct>{}, [&](std::string_view name, auto, Written when) {
    if (!seen.test(index++) && when == Written::always) json.lacks_key(name);
  });
}

inline void read_environment(JsonReader& json, Environment& to) {
  json.begin_object();
  while (const auto key = json.next_key()) {
    auto& value = to.emplace_back(std::string(*key), std::string()).second;
    if (json.is_text()) {
      value = json.text();
    } else if (json.is_integer()) {
      value = json.integer<std::int64_t>();
    } else {
      value = json.null() ? std::numeric_limits<double>::quiet_NaN() : json.number();
    }
  }
}

// Reads lists of sizes; null where distinct ones were too many to keep apart. Files of schema version 5 have a text.
inline void read_op_shapes(JsonReader& json, OpShapes& to) {
  to = {};
  if (json.is_text()) {
    auto shapes = shapes_in_text(json.text());
    if (!shapes) json.refuse("is no list of sizes");
    to = *std::move(shapes);
  } else if (json.null()) {
    to.others = true;
  } else {
    read_value(json, to.tensors);
  }
}

template <class Key>
void read_kind(JsonReader& json, Key& to) {
  auto kind = std::remove_cvref_t<decltype(*to.get())>();
  if constexpr (std::same_as<decltype(kind), Predicted>) {
    if (json.is_text()) {  // in files of schema version 5
      if (json.text().empty()) return;
      json.refuse("is in words, as an earlier roofprof wrote it: predict again");
    }
  }
  if constexpr (std::same_as<decltype(kind), MergedRanks>) {
    if (json.path() != "merged") json.refuse("is in the report of one rank");
  }
  read_members(json, kind);
  if constexpr (std::same_as<decltype(kind), MergedRanks>) {
    if (kind.ranks.empty()) return;
  }
  to.set(std::move(kind));
}

template <class Row>
void read_table(JsonReader& json, std::vector<Row>& to) {
  std::vector<std::string> columns;
  const std::vector<std::string> expected = json_detail::member_names<Row>();
  bool has_rows = false;
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "columns") {
      read_value(json, columns);
      if (columns != expected) json.refuse("does not list the columns that this roofprof reads");
    } else if (*key == "rows") {
      if (columns.empty()) json.refuse("comes before 'columns'");
      has_rows = true;
      json.begin_array();
      while (json.next_item()) {
        Row& row = to.emplace_back();
        json.begin_array();
        for_each_member(Of<Row>{}, [&](std::string_view, auto member, Written) {
          if (!json.next_item()) json.refuse("is shorter than 'columns'");
          read_value(json, std::invoke(member, row));
        });
        if (json.next_item()) json.refuse("is longer than 'columns'");
      }
    } else {
      json.skip();
    }
  }
  if (!has_rows) json.lacks_key("rows");
}

template <class Value>
void read_value(JsonReader& json, Value& to) {
  using namespace json_detail;
  if constexpr (HasMembers<Value>) {
    read_members(json, to);
  } else if constexpr (HasText<Value>) {
    if (const std::string text = json.text(); !text.empty()) to.set(text);
  } else if constexpr (HasKind<Value>) {
    read_kind(json, to);
  } else if constexpr (std::same_as<Value, OpShapes>) {
    read_op_shapes(json, to);
  } else if constexpr (IsInMaybe<Value>) {
    typename Value::Value value{};
    read_value(json, value);
    to.set(std::move(value));
  } else if constexpr (HasFlag<Value>) {
    to.set(json.boolean());
  } else if constexpr (IsKept<Value>) {
    if (json.is_text()) json.refuse("is a text, as an earlier roofprof wrote it: merge again");
    auto profile = std::make_shared<Profile>();
    read_value(json, *profile);
    to = std::move(profile);
  } else if constexpr (std::is_enum_v<Value>) {
    const std::string name = json.text();
    const std::size_t found = index_in(names_of_enum<Value>, name);
    if (found == names_of_enum<Value>.size()) json.refuse("cannot be '" + shown(name) + "'");
    to = static_cast<Value>(found);
  } else if constexpr (std::same_as<Value, Environment>) {
    to.clear();
    read_environment(json, to);
  } else if constexpr (has_element_names<Value>) {
    to = {};
    json.begin_object();
    while (const auto key = json.next_key()) {
      const std::size_t found = index_in(ElementNames<Value>::names, *key);
      if (found == to.size()) {
        json.refuse("is unknown: there is no " + std::string(ElementNames<Value>::noun) + " '" + shown(*key) + "'");
      }
      read_value(json, to[found]);
    }
  } else if constexpr (is_list_by_name<Value>) {
    to.clear();
    json.begin_object();
    while (const auto key = json.next_key()) {
      auto& named = to.emplace_back();
      named.first = *key;
      read_value(json, named.second);
    }
  } else if constexpr (is_vector<Value>) {
    using Item = typename Value::value_type;
    to.clear();
    if constexpr (is_table_row<Item>) {
      read_table(json, to);
    } else {
      json.begin_array();
      while (json.next_item()) read_value(json, to.emplace_back());
    }
  } else if constexpr (is_array<Value>) {
    json.begin_array();
    std::size_t count = 0;
    while (json.next_item()) {
      if (count < to.size()) read_value(json, to[count]);
      ++count;
      if (count > to.size()) json.skip();
    }
    if (count != to.size()) json.refuse_type("a list of " + std::to_string(to.size()));
  } else if constexpr (is_map_by_name<Value>) {
    to.clear();
    json.begin_object();
    while (const auto key = json.next_key()) read_value(json, to[std::string(*key)]);
  } else if constexpr (is_optional<Value>) {
    if (json.null()) {
      to.reset();
    } else {
      read_value(json, to.emplace());
    }
  } else if constexpr (std::same_as<Value, bool>) {
    to = json.boolean();
  } else if constexpr (std::integral<Value>) {
    to = json.integer<Value>();
  } else if constexpr (std::same_as<Value, double>) {
    to = json.number();
  } else {
    static_assert(std::same_as<Value, std::string>);
    to = json.text();
  }
}

}  // namespace roofprof
