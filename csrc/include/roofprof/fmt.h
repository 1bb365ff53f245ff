#pragma once
// Reports with {fmt}: fmt::print("{}", report) prints its table. The only header of roofprof's that needs fmt.
//
// torch brings fmt's headers and no library of it to link: its functions are then compiled into the program.
#if !defined(FMT_HEADER_ONLY) && !defined(FMT_SHARED) && !defined(ROOFPROF_FMT_LINKED)
#ifdef FMT_VERSION
#error "fmt was included before: define FMT_HEADER_ONLY for the whole program, or ROOFPROF_FMT_LINKED if it links fmt"
#endif
#define FMT_HEADER_ONLY 1
#endif

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "roofprof/report.h"

template <>
struct fmt::formatter<roofprof::Report> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const roofprof::Report& report, Context& context) const {
    const std::string table = report.table();
    return fmt::formatter<std::string_view>::format(table, context);
  }
};
