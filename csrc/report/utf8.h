#pragma once
// Just enough of columns for names: length in code points.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/utf8.h"

namespace roofprof {

// Returns the number of code points; each is taken to be one column wide. An invalid byte counts as one.
std::size_t display_width(std::string_view text);

// The part to keep of a text: names differ at both ends, paths at the end.
enum class Keep : std::uint8_t { both_ends, end };

// Returns at most `width` columns of the text, with "…" in place of the rest where it is longer.
std::string truncate(std::string_view text, std::size_t width, Keep keep = Keep::both_ends);

}  // namespace roofprof
