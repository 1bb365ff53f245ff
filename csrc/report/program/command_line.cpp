#include "report/program/command_line.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace roofprof::program {
namespace {

constexpr std::array<std::string_view, 8> kWithValue = {"--by",    "--columns", "--sort", "--depth",
                                                        "--limit", "--width",   "--json", "--csv"};
constexpr std::array<std::string_view, 5> kSwitches = {"--expand", "--rows-only", "--no-legend", "--version", "--help"};

std::string name_of(std::string_view word) {
  if (word == "-o") return "--json";
  return word == "-h" ? "--help" : std::string(word);
}

}  // namespace

CommandLine::CommandLine(const std::vector<std::string>& words) {
  bool only_files = false;  // behind --
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (only_files || !word.starts_with('-')) {
      command_.empty() ? command_ = word : files_.emplace_back(word);
    } else if (word == "--") {
      only_files = true;
    } else {
      const auto equals = word.starts_with("--") ? word.find('=') : word.npos;
      const auto option = name_of(word.substr(0, equals));
      if (std::ranges::find(kWithValue, option) != kWithValue.end()) {
        if (equals == word.npos && i + 1 == words.size()) throw UsageError(option + " needs a value");
        options_[option] = equals == word.npos ? words[++i] : word.substr(equals + 1);
      } else if (std::ranges::find(kSwitches, option) != kSwitches.end() && equals == word.npos) {
        options_[option] = "";
      } else {
        throw UsageError("there is no option '" + word + "'");
      }
    }
  }
}

std::optional<std::string> CommandLine::text(const std::string& option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> CommandLine::list(const std::string& option) const {
  std::vector<std::string> items;
  const std::string all = text(option).value_or("");
  for (std::size_t start = 0; start < all.size();) {
    const auto end = std::min(all.find(',', start), all.size());
    const auto first = std::min(all.find_first_not_of(' ', start), end);
    const auto last = all.find_last_not_of(' ', end - 1);
    if (first < end) items.push_back(all.substr(first, last + 1 - first));
    start = end + 1;
  }
  return items;
}

std::optional<std::int64_t> CommandLine::number(const std::string& option) const {
  const auto value = text(option);
  if (!value) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size()) {
    throw UsageError(option + " takes a whole number, not '" + *value + "'");
  }
  return number;
}

}  // namespace roofprof::program
