#pragma once
// The parts of the extension module _report, one file each, and what they share.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/json/members.h"
#include "core/members.h"
#include "core/utf8.h"
#include "python/report/signatures.h"

namespace roofprof::python {

// Returns a function for .def("__repr__", ...) that makes the text printable, because it has names in it.
template <class Self>
auto repr_of(std::string (*text)(const Self&)) {
  return [text](const Self& self) { return printable(text(self)); };
}

inline double seconds(double nanoseconds) { return nanoseconds * 1e-9; }
inline std::optional<double> seconds(std::optional<std::int64_t> nanoseconds) {
  return nanoseconds ? std::optional(seconds(static_cast<double>(*nanoseconds))) : std::nullopt;
}

// help()'s texts of a struct, and of its attributes by name.
struct Docs {
  const char* of_struct = "";
  std::map<std::string_view, const char*> of_attributes = {};
};

// Binds a struct with every member of its list (core/members.h), read-only and under the member's name. An enumeration
// becomes the value's name; a time, `mean_ns`, becomes seconds, `mean`. `repr` makes the text for people. Pickles are
// the struct's JSON.
template <class Struct, bool times_in_seconds = true>
pybind11::class_<Struct> bind_struct(pybind11::module_& module, const char* name, const Docs& docs = {},
                                     std::string (*repr)(const Struct&) = nullptr) {
  pybind11::class_<Struct> bound(module, name, docs.of_struct);
  if (repr != nullptr) bound.def("__repr__", repr_of(repr));
  bound.def(pybind11::pickle(
      [](const Struct& self) {
        JsonWriter json;
        write_value(json, self);
        return json.take();
      },
      [](const std::string& text) {
        Struct self;
        JsonReader json(text);
        read_value(json, self);
        return self;
      }));
  for_each_member(Of<Struct>{}, [&]<class Value>(std::string_view key, Value Struct::* member, Written) {
    const auto add = [&](std::string_view attribute, auto get) {
      const auto doc = docs.of_attributes.find(attribute);
      bound.def_property_readonly(std::string(attribute).c_str(), get,
                                  doc == docs.of_attributes.end() ? "" : doc->second);
    };
    if constexpr (std::is_enum_v<Value>) {
      add(key, [member](const Struct& self) {
        return std::string(names_of_enum<Value>.at(static_cast<std::size_t>(self.*member)));
      });
      return;
    } else if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::optional<std::int64_t>>) {
      if (times_in_seconds && key.ends_with("_ns")) {
        add(key.substr(0, key.size() - 3), [member](const Struct& self) { return seconds(self.*member); });
        return;
      }
    }
    add(key, [member](const Struct& self) -> const Value& { return self.*member; });
  });
  return bound;
}

void bind_ceilings(pybind11::module_& module);
void bind_rows(pybind11::module_& module);
void bind_report(pybind11::module_& module);
void bind_columns(pybind11::module_& module);  // after the report
void bind_document(pybind11::module_& module);
void bind_prediction(pybind11::module_& module);

}  // namespace roofprof::python
