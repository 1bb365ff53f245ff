#pragma once
// Reports with {fmt}: fmt::print("{}", report) prints its table. The only header of roofprof's that needs fmt.

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
