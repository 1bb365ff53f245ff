#pragma once
// Phrases that notes share.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace roofprof {

// A name from a file as a sentence can show it: short, and nothing in it that a terminal would act on.
std::string shown(std::string_view text);

// The number of modules that a note names; further ones are counted.
inline constexpr std::size_t kNamed = 3;

// "3.4%" of 0.034, "34%" of 0.34.
std::string percent(double fraction);

// A row's path, where a sentence needs a name for the model's own, which is "".
std::string display_path(const std::string& path);

// Returns those of the modules' paths that are not below another one of them.
std::vector<std::string> topmost_of(const std::vector<std::string>& paths);

// "1 copy", "3 copies"; where `many` is empty, `one` with an s.
std::string counted(std::int64_t count, std::string_view one, std::string_view many = "");

// "a", then "a, b": a list that is made item by item.
void add_item(std::string& list, std::string_view item);

// "a, b, c"; with `most`, "a, b, c and 4 more".
template <class Items>
std::string listed(const Items& items, std::size_t most = ~std::size_t{0}) {
  std::string list;
  std::size_t named = 0;
  for (const auto& item : items) {
    if (named == most) return list + " and " + std::to_string(items.size() - named) + " more";
    add_item(list, item);
    ++named;
  }
  return list;
}

}  // namespace roofprof
