#pragma once
// Reading one value of a report's JSON.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile_data.h"

namespace roofprof::python {

// Every key must be there: a report that misses one was not written by roofprof.
template <class Value>
void read(const pybind11::dict& from, const char* key, Value& to) {
  if (!from.contains(key)) throw pybind11::key_error(key);
  try {
    to = from[key].cast<Value>();
  } catch (const pybind11::cast_error&) {
    throw pybind11::type_error(std::string("'") + key + "' has the wrong type");
  }
}

inline pybind11::dict child(const pybind11::dict& from, const char* key) {
  pybind11::dict result;
  read(from, key, result);
  return result;
}

template <class Item, class ReadItem>
std::vector<Item> read_list(const pybind11::dict& from, const char* key, ReadItem&& read_item) {
  pybind11::list items;
  read(from, key, items);
  std::vector<Item> result;
  result.reserve(items.size());
  for (const auto item : items) result.push_back(read_item(pybind11::cast<pybind11::dict>(item)));
  return result;
}

// The entry of that name in a list of an enumeration's names.
template <class Enum, class Names>
Enum read_named(const pybind11::dict& from, const char* key, const Names& names) {
  std::string name;
  read(from, key, name);
  const auto found = std::find(names.begin(), names.end(), std::string_view(name));
  if (found == names.end()) throw pybind11::value_error("'" + std::string(key) + "' cannot be '" + name + "'");
  return static_cast<Enum>(found - names.begin());
}

inline Phase read_phase(const pybind11::dict& from) { return read_named<Phase>(from, "phase", kPhaseNames); }

}  // namespace roofprof::python
