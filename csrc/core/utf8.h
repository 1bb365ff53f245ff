#pragma once
// UTF-8, and what of it a terminal may see.

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

// The text with nothing in it that a terminal would act on, on one line: each invalid byte becomes U+FFFD, each control
// character a space. Names come from files and models. roofprof.render.printable is the same in Python.
std::string printable(std::string_view text);

}  // namespace roofprof
