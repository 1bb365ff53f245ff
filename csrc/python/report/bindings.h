#pragma once
// The parts of the extension module _report, one file each, and what they share.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/members.h"
#include "core/utf8.h"

namespace roofprof::python {

// Returns a function for .def("__repr__", ...) that makes the text printable, because it has names in it.
template <class Self>
auto repr_of(std::string (*text)(const Self&)) {
  return [text](const Self& self) { return printable(text(self)); };
}

// Returns a getter of a time in seconds, None where it is not known.
template <class Struct, class Time>
auto seconds_of(Time Struct::* member) {
  return [member](const Struct& self) -> std::optional<double> {
    if constexpr (std::is_arithmetic_v<Time>) {
      return static_cast<double>(self.*member) * 1e-9;
    } else {
      return self.*member ? std::optional(static_cast<double>(*(self.*member)) * 1e-9) : std::nullopt;
    }
  };
}

// Binds a struct with every member of its list (core/members.h), read-only and under the member's name. An enumeration
// becomes the value's name; a time, `mean_ns`, becomes seconds, `mean`. `repr` makes the text for people.
template <class Struct>
pybind11::class_<Struct> bind_struct(pybind11::module_& module, const char* name,
                                     std::string (*repr)(const Struct&) = nullptr) {
  pybind11::class_<Struct> bound(module, name);
  if (repr != nullptr) bound.def("__repr__", repr_of(repr));
  for_each_member(Of<Struct>{}, [&]<class Value>(std::string_view key, Value Struct::* member, Written) {
    const std::string attribute(key);
    if constexpr (std::is_enum_v<Value>) {
      bound.def_property_readonly(attribute.c_str(), [member](const Struct& self) {
        return std::string(names_of_enum<Value>.at(static_cast<std::size_t>(self.*member)));
      });
      return;
    } else if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::optional<std::int64_t>>) {
      if (key.ends_with("_ns")) {
        bound.def_property_readonly(attribute.substr(0, key.size() - 3).c_str(), seconds_of<Struct>(member));
        return;
      }
    }
    bound.def_readonly(attribute.c_str(), member);
  });
  return bound;
}

void bind_ceilings(pybind11::module_& module);
void bind_rows(pybind11::module_& module);
void bind_report(pybind11::module_& module);
void bind_document(pybind11::module_& module);
void bind_prediction(pybind11::module_& module);

}  // namespace roofprof::python
