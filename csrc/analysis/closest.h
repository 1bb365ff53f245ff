#pragma once
// What somebody who misspelt a name may have meant.

#include <string>
#include <string_view>
#include <vector>

namespace roofprof {

// "'a', 'b', 'c'": the closest of the names; those that hold the wanted one whole come first.
std::string closest(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace roofprof
