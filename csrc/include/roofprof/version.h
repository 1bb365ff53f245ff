#pragma once

#if __cplusplus < 202002L
#error "roofprof needs C++20: compile with -std=c++20 (in CMake: target_compile_features(... cxx_std_20))"
#include "roofprof ends here"  // what follows would be hundreds of errors
#endif

#include <string_view>

// The version of roofprof that a program is compiled with; the build takes it from here.

// NOLINTBEGIN(modernize-macro-to-enum): for #if
#define ROOFPROF_VERSION_MAJOR 0
#define ROOFPROF_VERSION_MINOR 1
#define ROOFPROF_VERSION_PATCH 0
// NOLINTEND(modernize-macro-to-enum)

#define ROOFPROF_TEXT_(x) #x
#define ROOFPROF_TEXT(x) ROOFPROF_TEXT_(x)
// "0.1.0"
#define ROOFPROF_VERSION                \
  ROOFPROF_TEXT(ROOFPROF_VERSION_MAJOR) \
  "." ROOFPROF_TEXT(ROOFPROF_VERSION_MINOR) "." ROOFPROF_TEXT(ROOFPROF_VERSION_PATCH)

namespace roofprof {

// Returns the version of the library that the program has loaded, in the same form.
[[nodiscard]] std::string_view version() noexcept;

}  // namespace roofprof
