#pragma once
// Observed data from Python's dicts, by the member lists of values/members.h.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "values/members.h"

namespace roofprof::python {

// Every key must be there.
template <class Value>
void read(const pybind11::dict& from, std::string_view key, Value& to) {
  const pybind11::str name(key.data(), key.size());
  if (!from.contains(name)) throw pybind11::key_error(std::string(key));
  try {
    to = from[name].template cast<Value>();
  } catch (const pybind11::cast_error&) {
    throw pybind11::type_error("'" + std::string(key) + "' has the wrong type");
  }
}

template <class Struct>
Struct read_members(const pybind11::dict& from) {
  Struct result;
  for_each_member(Of<Struct>{}, [&](std::string_view name, auto member, Written) { read(from, name, result.*member); });
  return result;
}

}  // namespace roofprof::python
