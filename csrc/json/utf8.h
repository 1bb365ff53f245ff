#pragma once

#include <cstddef>
#include <string_view>

namespace roofprof {

// Bytes of the valid sequence at the front of `text`; 0 where it is none (stray, truncated, overlong, surrogate).
std::size_t utf8_sequence(std::string_view text);

}  // namespace roofprof
