#pragma once
// Finds the names that somebody may have meant who misspelt one.

#include <string>
#include <string_view>
#include <vector>

namespace roofprof {

// Returns the closest of the names as "'a', 'b', 'c'"; names that contain the wanted one come first.
std::string closest(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace roofprof
