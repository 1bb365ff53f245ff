#include "read_data.h"

#include <string>

#include "read_value.h"

namespace py = pybind11;

namespace roofprof::python {

Work read_work(const py::dict& from) {
  Work work;
  read(from, "macs", work.macs);
  read(from, "causal_macs", work.causal_macs);
  read(from, "read_bytes", work.read_bytes);
  read(from, "write_bytes", work.write_bytes);
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
