#include "core/kernel_names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace roofprof {

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;  // "f" would become "float"
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

}  // namespace roofprof
