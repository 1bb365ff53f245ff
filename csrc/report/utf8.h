#pragma once
// Just enough of columns for names: length in code points.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/utf8.h"

namespace roofprof {

// Code points; each is taken to be one column wide. An invalid byte counts as one.
std::size_t display_width(std::string_view text);

// Both ends of a name tell it apart, a path its end.
enum class Keep : std::uint8_t { both_ends, end };

// At most `width` columns, with "…" in place of the rest where the text is longer.
std::string truncate(std::string_view text, std::size_t width, Keep keep = Keep::both_ends);

}  // namespace roofprof
