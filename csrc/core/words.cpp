#include "core/words.h"

#include <array>
#include <cstdio>

namespace roofprof {

std::string percent(double fraction) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), fraction < 0.1 ? "%.1f%%" : "%.0f%%", 100 * fraction);
  return text.data();
}

std::string display_path(const std::string& path) { return path.empty() ? "the model" : path; }

}  // namespace roofprof
