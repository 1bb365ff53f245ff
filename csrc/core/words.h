#pragma once
// How notes put things.

#include <cstddef>
#include <string>

namespace roofprof {

// Of the places that a note is about; further ones are counted.
inline constexpr std::size_t kNamedPlaces = 3;

// "3.4%" of 0.034, "34%" of 0.34.
std::string percent(double fraction);

// A row's path, where a sentence needs a name for the model's own, which is "".
std::string display_path(const std::string& path);

}  // namespace roofprof
