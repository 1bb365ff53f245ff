#include "core/profile_kind.h"

#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "core/phrases.h"
#include "core/profile.h"

namespace roofprof {
namespace {

// Returns six digits where they are exact, else the fewest digits that read back as the value.
std::string exact_text(double value) {
  auto text = short_text(value, 6);
  double read = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, read).ptr == end && read == value) return text;
  std::array<char, 64> exact{};
  return {exact.data(), std::to_chars(exact.data(), exact.data() + exact.size(), value).ptr};
}

}  // namespace

std::string words_of(const Predicted& options) {
  std::string words;
  const auto add = [&](const auto&... parts) {
    if (!words.empty()) words += ", ";
    (words.append(parts), ...);
  };
  if (options.precision) add("in ", name_of(*options.precision));
  if (options.batch) add("batch ", std::to_string(*options.batch));
  if (options.counted_under_autocast) add("as autocast ran it");
  if (options.autocast) add("as under autocast in ", name_of(*options.autocast));
  if (options.channels_last) add("channels last");
  if (options.mode == LaunchMode::compiled) add("compiled");
  if (options.mode == LaunchMode::graph) add("as a graph");
  if (options.host_seconds) add("with ", exact_text(*options.host_seconds), " s of the host per op");
  if (options.bandwidth != 1) add("with ", exact_text(options.bandwidth), " x its bandwidth");
  if (options.peak != 1) add("with ", exact_text(options.peak), " x its peaks");
  if (options.ranks > 1) add(std::to_string(options.ranks), " ranks by ", name_of(options.parallel));
  return words.empty() ? "as it was counted" : words;
}

bool KeptReport::operator==(const KeptReport& other) const {
  return rank == other.rank && (report == other.report || (report && other.report && *report == *other.report));
}

}  // namespace roofprof
