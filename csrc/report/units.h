#pragma once
// Figures as people read them: three significant digits and a prefix. "4.09 G", "25.6 M", "1.20 ms", "34.1 GB/s".
//
// `gap` stands between number and unit; tables leave it out.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "roofprof/dtype.h"

namespace roofprof {

// Counts and rates by powers of 1,000: "0", "999", "4.09 G"; `unit` follows the prefix ("4.09 GFLOP/s").
std::string human_count(double value, std::string_view unit = "", std::string_view gap = " ");
// Bytes, as rates by powers of 1,000 too: "12 B", "1.23 MB".
std::string human_bytes(double bytes, std::string_view gap = " ");
// "12 ns", "34.1 µs", "1.20 ms", "2.50 s", "754 s"; negative times keep their sign.
std::string human_time(double nanoseconds, std::string_view gap = " ");
// Three significant digits, without a prefix: "0.0123", "8.15", "1234".
std::string human_ratio(double value);
// "0.03%", "8.1%", "45.2%", "123%".
std::string human_percent(double percent);

// "fp32=8000 int64=12"; empty where all are zero.
std::string by_dtype_text(const std::array<std::int64_t, kDTypeCount>& counts);
// "128x8x1"; empty where nothing was launched in blocks (a copy).
std::string blocks_text(const std::array<std::int32_t, 3>& blocks);

}  // namespace roofprof
