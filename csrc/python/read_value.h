#pragma once
// Observed data from Python's dicts, by the member lists of core/members.h.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <string>

#include "core/members.h"

namespace roofprof::python {

// Reads the value of a key, which must exist.
template <class Value>
void read(const pybind11::dict& from, std::string_view key, Value& to) {
  const pybind11::str name(key.data(), key.size());
  if (!from.contains(name)) throw pybind11::key_error(std::string(key));
  const pybind11::object value = from[name];
  try {
    to = value.template cast<Value>();
  } catch (const pybind11::cast_error&) {
    if (pybind11::isinstance<pybind11::str>(value) && PyUnicode_AsUTF8AndSize(value.ptr(), nullptr) == nullptr) {
      PyErr_Clear();
      throw pybind11::value_error("'" + std::string(key) + "' is " + std::string(pybind11::repr(value)) +
                                  ", which has half of a character (a surrogate): give it another name");
    }
    throw pybind11::type_error("'" + std::string(key) + "' has the wrong type");
  }
}

template <class Struct>
Struct read_members(const pybind11::dict& from) {
  Struct result;
  for_each_member(Of<Struct>{},
                  [&](std::string_view name, auto member, Written) { read(from, name, std::invoke(member, result)); });
  return result;
}

}  // namespace roofprof::python
