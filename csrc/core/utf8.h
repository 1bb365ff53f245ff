#pragma once
// UTF-8, and what of it a reader sees. Python takes `printable` from here.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace roofprof {

// Returns the number of bytes of the valid sequence at the front of `text`; 0 where it is not valid (stray, truncated,
// overlong, surrogate).
std::size_t utf8_sequence(std::string_view text);

// Appends the code point, which must not be a surrogate.
void append_utf8(std::string& to, std::uint32_t code);

// Returns the text with nothing in it that a terminal would act on or that is hidden, on one line: each invalid byte
// becomes U+FFFD, each control character a space, and each run of characters of which nothing is seen, which turn the
// direction of what follows, or which pile up on a letter, one U+FFFD. Those that make one emoji of several stay where
// they do. Names come from files and models.
std::string printable(std::string_view text);

// Does the same for a text that was laid out in lines, but keeps its lines and tabs.
std::string printable_lines(std::string_view text);

}  // namespace roofprof
