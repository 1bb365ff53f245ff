#pragma once
// JSON that was damaged, the same at every run, so that what is found can be found again.

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace roofprof::testing {

// Changes a text in one place or two. `piece` is how its pieces begin, which change places or come twice.
class Damage {
 public:
  Damage(std::uint64_t seed, std::string_view piece) : piece_(piece), random_(seed) {}

  std::size_t below(std::size_t end) { return end == 0 ? 0 : static_cast<std::size_t>(random_() % end); }

  void apply(std::string& text) {
    if (text.empty()) return;
    switch (below(14)) {
      case 0:
        text[below(text.size())] = static_cast<char>(below(256));
        break;
      case 1:
        text[below(text.size())] = kStructure[below(kStructure.size())];
        break;
      case 2:
        text.insert(below(text.size()), 1, kStructure[below(kStructure.size())]);
        break;
      case 3:
        if (below(4) == 0) text.resize(below(text.size()));
        break;
      case 4:
        text.erase(below(text.size()), below(60));
        break;
      case 5:
        text.insert(below(text.size()), text.substr(below(text.size()), below(200)));
        break;
      case 6:
      case 7:
      case 8:
        replace_word(text, "0123456789.", kValues[below(kValues.size())]);
        break;
      case 9:
      case 10:
        replace_word(text, "0123456789", std::to_string(below(1000)));
        break;
      default:
        swap_pieces(text);
    }
  }

 private:
  static constexpr std::string_view kStructure = "{}[]\",:\\ 0-.eE\n";
  static constexpr std::array<std::string_view, 18> kValues = {
      "-1",   "0",    "1e308", "-1e15",  "99999999999999999999", "9223372036854775807", "NaN", "null", "\"x\"",
      "true", "1e-9", "{}",    "[[],1]", "4294967296",           "2305843009213693951", "",    "-0.5", "1e3"};

  // The digits around some place.
  void replace_word(std::string& text, std::string_view characters, std::string_view value) {
    const auto begin = text.find_first_of(characters, below(text.size()));
    if (begin == text.npos) return;
    const auto end = std::min(text.find_first_not_of(characters, begin), text.size());
    text.replace(begin, end - begin, value);
  }

  void swap_pieces(std::string& text) {
    const auto first = text.find(piece_, below(text.size()));
    const auto second = first == text.npos ? first : text.find(piece_, first + 1);
    const auto third = second == text.npos ? second : text.find(piece_, second + 1);
    if (third == text.npos) return;
    const auto moved = text.substr(first, second - first);
    text.insert(third, moved);
    if (below(2) == 0) text.erase(first, second - first);
  }

  std::string_view piece_;
  std::mt19937_64 random_;
};

}  // namespace roofprof::testing
