#include "core/utf8.h"

#include <algorithm>
#include <array>

namespace roofprof {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct CodeRange {
  std::uint32_t first;
  std::uint32_t last;
};

// Nothing is seen of these, or they turn the direction of what follows: Unicode's Default_Ignorable_Code_Point (UAX
// #44: soft hyphens, zero widths, directions, fillers, selectors of variants, tags), and marks of annotations.
constexpr std::array kHidden = std::to_array<CodeRange>({{0xAD, 0xAD},
                                                         {0x34F, 0x34F},
                                                         {0x61C, 0x61C},
                                                         {0x115F, 0x1160},
                                                         {0x17B4, 0x17B5},
                                                         {0x180B, 0x180F},
                                                         {0x200B, 0x200F},
                                                         {0x202A, 0x202E},
                                                         {0x2060, 0x206F},
                                                         {0x3164, 0x3164},
                                                         {0xFE00, 0xFE0F},
                                                         {0xFEFF, 0xFEFF},
                                                         {0xFFA0, 0xFFA0},
                                                         {0xFFF0, 0xFFFB},
                                                         {0x1BCA0, 0x1BCA3},
                                                         {0x1D173, 0x1D17A},
                                                         {0xE0000, 0xE0FFF}});

// Marks that stand above or below the letter before them, where any number of them may stand: a flood of them covers
// the lines around it.
constexpr std::array kMarks = std::to_array<CodeRange>(
    {{0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},   {0x64B, 0x65F},   {0x6D6, 0x6ED},
     {0x730, 0x74A},   {0x951, 0x954},   {0xE34, 0xE3A},   {0xE47, 0xE4E},   {0xEB4, 0xEBC},   {0xEC8, 0xECE},
     {0xF71, 0xF84},   {0x1AB0, 0x1AFF}, {0x1CD0, 0x1CE8}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20F0}, {0x2DE0, 0x2DFF},
     {0x302A, 0x302F}, {0x3099, 0x309A}, {0xA66F, 0xA67D}, {0xA8E0, 0xA8F1}, {0xFE20, 0xFE2F}});
constexpr std::size_t kMostMarks = 4;  // no script needs more on one letter

template <std::size_t Size>
bool is_in(const std::array<CodeRange, Size>& ranges, std::uint32_t code) {
  const auto* const range = std::ranges::lower_bound(ranges, code, {}, &CodeRange::last);
  return range != ranges.end() && range->first <= code;
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029;
}

bool is_symbol(std::uint32_t code) {  // emoji among them
  return code == 0xA9 || code == 0xAE || (code >= 0x203C && code <= 0x2BFF) || (code >= 0x1F000 && code <= 0x1FAFF);
}

// Returns the code of one valid sequence.
std::uint32_t code_of(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence.front());
  std::uint32_t code = sequence.size() == 1 ? lead : lead & (0xFFU >> (sequence.size() + 1));
  for (const char byte : sequence.substr(1)) code = (code << 6U) | (static_cast<unsigned char>(byte) & 0x3FU);
  return code;
}

// Returns whether the text begins with a surrogate in the form of UTF-8, as Python encodes surrogates of a str.
bool is_surrogate(std::string_view text) {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  return text.size() >= 3 && byte_at(0) == 0xED && byte_at(1) >= 0xA0 && byte_at(1) < 0xC0 &&
         (byte_at(2) & 0xC0U) == 0x80;
}

// Returns whether the character belongs to the emoji between which it stands.
bool shapes(std::uint32_t code, std::uint32_t before, std::string_view rest) {
  constexpr std::uint32_t kJoiner = 0x200D;       // of several symbols to one
  constexpr std::uint32_t kSelectsText = 0xFE0E;  // which form of the symbol before it
  constexpr std::uint32_t kSelectsEmoji = 0xFE0F;
  constexpr std::uint32_t kKeycap = 0x20E3;
  if (code != kJoiner && code != kSelectsText && code != kSelectsEmoji) return false;
  const std::size_t length = utf8_sequence(rest);
  const std::uint32_t next = length > 0 ? code_of(rest.substr(0, length)) : 0;
  if (code == kJoiner) return (is_symbol(before) || before == kSelectsEmoji) && is_symbol(next);
  return is_symbol(before) || next == kKeycap;
}

std::string printable_text(std::string_view text, bool keeps_lines) {
  std::string result;
  result.reserve(text.size());
  std::uint32_t before = 0;
  bool hidden = false;  // the last that was added stands for what is hidden
  std::size_t marks = 0;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    const std::string_view point = text.substr(0, length);
    const std::uint32_t code = length > 0 ? code_of(point) : 0;
    const bool shapes_symbol = shapes(code, before, text.substr(length));
    marks = length > 0 && is_in(kMarks, code) ? marks + 1 : 0;
    if (length == 0) {
      result += kReplacement;
      hidden = false;
    } else if (!shapes_symbol && (is_in(kHidden, code) || marks > kMostMarks)) {
      if (!hidden) result += kReplacement;
      hidden = true;
    } else {
      result += is_control(code) && (!keeps_lines || (code != '\n' && code != '\t')) ? " " : point;
      hidden = false;
    }
    before = hidden ? 0 : code;
    text.remove_prefix(length > 0 ? length : is_surrogate(text) ? 3 : 1);
  }
  return result;
}

}  // namespace

std::size_t utf8_sequence(std::string_view text) {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  const unsigned char lead = byte_at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (byte_at(i) < 0x80 || byte_at(i) > 0xBF) return 0;
  }
  const unsigned char second = byte_at(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool too_large = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

void append_utf8(std::string& to, std::uint32_t code) {
  const auto add = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
  const auto add_rest = [&](std::uint32_t shift) { add(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0U | (code >> 6U));
  } else {
    if (code < 0x10000) {
      add(0xE0U | (code >> 12U));
    } else {
      add(0xF0U | (code >> 18U));
      add_rest(12);
    }
    add_rest(6);
  }
  add_rest(0);
}

std::string printable(std::string_view text) { return printable_text(text, false); }

std::string printable_lines(std::string_view text) { return printable_text(text, true); }

}  // namespace roofprof
