#pragma once
// How notes put things.

#include <string>

namespace roofprof {

// "3.4%" of 0.034, "34%" of 0.34.
std::string percent(double fraction);

// A row's path, where a sentence needs a name for the model's own, which is "".
std::string display_path(const std::string& path);

}  // namespace roofprof
