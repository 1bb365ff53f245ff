#pragma once
// Just enough UTF-8 for names and columns: length in code points.

#include <cstddef>
#include <string>
#include <string_view>

#include "json/utf8.h"

namespace roofprof {

// Code points; each is taken to be one column wide. An invalid byte counts as one.
std::size_t display_width(std::string_view text);

// The text with each invalid byte replaced by U+FFFD, and each control character by a space, so that it stays on its
// line.
std::string printable(std::string_view text);

// At most `width` columns, the middle replaced by "…" where the text is longer: both ends of a name tell it apart.
std::string truncate_middle(std::string_view text, std::size_t width);

}  // namespace roofprof
