#include "core/profile_kind.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "core/phrases.h"
#include "core/profile.h"

namespace roofprof {
namespace {

constexpr std::string_view kPrecision = "in ";
constexpr std::string_view kBatch = "batch ";
constexpr std::string_view kUnderAutocast = "as autocast ran it";
constexpr std::string_view kChannelsLast = "channels last";
constexpr std::string_view kAutocast = "as under autocast in ";
constexpr std::string_view kCompiled = "compiled";
constexpr std::string_view kGraph = "as a graph";
constexpr std::string_view kHost = " s of the host per op";
constexpr std::string_view kFactor = "with ";
constexpr std::string_view kBandwidth = " x its bandwidth";
constexpr std::string_view kPeak = " x its peaks";
constexpr std::string_view kRanks = " ranks by ";
constexpr std::string_view kNoOption = "as it was counted";

// Reads a number that the whole text is.
template <class Number>
bool read_number(std::string_view text, Number& to) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, to);
  return error == std::errc{} && stop == end;
}

// Six digits where they are exact, else as many as tell the value from all others.
std::string exact_text(double value) {
  auto text = short_text(value, 6);
  double read = 0;
  if (read_number(std::string_view(text), read) && read == value) return text;
  std::array<char, 64> exact{};
  return {exact.data(), std::to_chars(exact.data(), exact.data() + exact.size(), value).ptr};
}

bool read_dtype(std::string_view name, std::optional<DType>& to) {
  const auto* found = std::ranges::find(kDTypeNames, name);
  if (found == kDTypeNames.end()) return false;
  to = static_cast<DType>(found - kDTypeNames.begin());
  return true;
}

bool read_ranks(std::string_view number, std::string_view name, Predicted& options) {
  const auto* found = std::ranges::find(kParallelNames, name);
  if (found == kParallelNames.end()) return false;
  options.parallel = static_cast<Parallel>(found - kParallelNames.begin());
  return read_number(number, options.ranks);
}

// Returns whether the phrase is an option, and sets it.
bool read_option(std::string_view phrase, Predicted& options) {
  const auto rest_after = [&](std::string_view start) { return phrase.substr(start.size()); };
  if (phrase == kUnderAutocast) return options.counted_under_autocast = true;
  if (phrase == kChannelsLast) return options.channels_last = true;
  for (const auto& [words, mode] : {std::pair{kCompiled, LaunchMode::compiled}, std::pair{kGraph, LaunchMode::graph}}) {
    if (phrase != words) continue;
    options.mode = mode;
    return true;
  }
  if (phrase.starts_with(kFactor) && phrase.ends_with(kHost)) {
    const auto number = rest_after(kFactor);
    return read_number(number.substr(0, number.size() - kHost.size()), options.host_seconds.emplace());
  }
  if (phrase.starts_with(kAutocast)) return read_dtype(rest_after(kAutocast), options.autocast);
  if (phrase.starts_with(kPrecision)) return read_dtype(rest_after(kPrecision), options.precision);
  if (phrase.starts_with(kBatch)) return read_number(rest_after(kBatch), options.batch.emplace());
  if (const auto place = phrase.find(kRanks); place != std::string_view::npos) {
    return read_ranks(phrase.substr(0, place), phrase.substr(place + kRanks.size()), options);
  }
  for (const auto& [unit, factor] : {std::pair{kBandwidth, &options.bandwidth}, std::pair{kPeak, &options.peak}}) {
    if (!phrase.starts_with(kFactor) || !phrase.ends_with(unit)) continue;
    const auto number = rest_after(kFactor);
    return read_number(number.substr(0, number.size() - unit.size()), *factor);
  }
  return false;
}

}  // namespace

std::string words_of(const Predicted& options) {
  std::string words;
  const auto add = [&](const auto&... parts) {
    if (!words.empty()) words += ", ";
    (words.append(parts), ...);
  };
  if (options.precision) add(kPrecision, name_of(*options.precision));
  if (options.batch) add(kBatch, std::to_string(*options.batch));
  if (options.counted_under_autocast) add(kUnderAutocast);
  if (options.autocast) add(kAutocast, name_of(*options.autocast));
  if (options.channels_last) add(kChannelsLast);
  if (options.mode == LaunchMode::compiled) add(kCompiled);
  if (options.mode == LaunchMode::graph) add(kGraph);
  if (options.host_seconds) add(kFactor, exact_text(*options.host_seconds), kHost);
  if (options.bandwidth != 1) add(kFactor, exact_text(options.bandwidth), kBandwidth);
  if (options.peak != 1) add(kFactor, exact_text(options.peak), kPeak);
  if (options.ranks > 1) add(std::to_string(options.ranks), kRanks, name_of(options.parallel));
  return words.empty() ? std::string(kNoOption) : words;
}

Predicted options_in_words(std::string_view words) {
  Predicted options;
  if (words == kNoOption) return options;
  for (auto rest = words;;) {
    const auto end = rest.find(", ");
    if (!read_option(rest.substr(0, end), options)) {
      throw std::invalid_argument("'" + shown(words) + "' are no options of a prediction that this roofprof knows");
    }
    if (end == std::string_view::npos) return options;
    rest.remove_prefix(end + 2);
  }
}

bool KeptReport::operator==(const KeptReport& other) const {
  return rank == other.rank && (report == other.report || (report && other.report && *report == *other.report));
}

}  // namespace roofprof
