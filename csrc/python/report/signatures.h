#pragma once
// The types that signatures name, and with them the type stubs, which are made of these.

#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "core/profile.h"

namespace roofprof::python {

using AnyDict = pybind11::typing::Dict<pybind11::str, pybind11::object>;
using AnyDicts = pybind11::typing::List<AnyDict>;
using Objects = pybind11::typing::List<pybind11::object>;
using CountsByName = pybind11::typing::Dict<pybind11::str, pybind11::int_>;
using Facts = pybind11::typing::Dict<pybind11::str, Environment::value_type::second_type>;
using TextOrBytes = pybind11::typing::Union<pybind11::str, pybind11::bytes>;

// Returns the facts of an environment.
inline Facts facts_of(const Environment& environment) {
  Facts facts;
  for (const auto& [name, value] : environment) facts[pybind11::str(name)] = pybind11::cast(value);
  return facts;
}

}  // namespace roofprof::python
