#include "read_data.h"

#include <pybind11/stl.h>

#include <functional>
#include <string>

#include "core/members.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

// Reads the value of a key, which must exist.
template <class Value>
void read(const py::dict& from, std::string_view key, Value& to) {
  const py::str name(key.data(), key.size());
  if (!from.contains(name)) throw py::key_error(std::string(key));
  const py::object value = from[name];
  try {
    to = value.template cast<Value>();
  } catch (const py::cast_error&) {
    if (py::isinstance<py::str>(value) && PyUnicode_AsUTF8AndSize(value.ptr(), nullptr) == nullptr) {
      PyErr_Clear();
      throw py::value_error("'" + std::string(key) + "' is " + std::string(py::repr(value)) +
                            ", which has half of a character (a surrogate): give it another name");
    }
    throw py::type_error("'" + std::string(key) + "' has the wrong type");
  }
}

template <class Struct>
Struct read_members(const py::dict& from) {
  Struct result;
  for_each_member(Of<Struct>{},
                  [&](std::string_view name, auto member, Written) { read(from, name, std::invoke(member, result)); });
  return result;
}

}  // namespace

Work read_work(const py::dict& from) {
  Work work;
  read(from, "macs", work.macs);
  read(from, "causal_macs", work.causal_macs);
  read(from, "read_bytes", work.read_bytes);
  read(from, "write_bytes", work.write_bytes);
  read(from, "lower_limit", work.lower_limit);
  py::dict operations;
  read(from, "operations", operations);
  for (const auto& [name, count] : operations) {
    work.operations_in(dtype_from_name(name.cast<std::string>())) += count.cast<std::int64_t>();
  }
  return work;
}

Module read_module(const py::dict& from) { return read_members<Module>(from); }

std::vector<Module> read_modules(const py::list& modules) {
  std::vector<Module> result;
  result.reserve(modules.size());
  for (const auto item : modules) result.push_back(read_module(py::cast<py::dict>(item)));
  return result;
}

TokenCalls read_token_calls(const py::dict& calls) { return read_members<TokenCalls>(calls); }

}  // namespace roofprof::python
