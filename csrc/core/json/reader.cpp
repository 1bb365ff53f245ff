#include "core/json/reader.h"

#include <algorithm>
#include <cmath>

#include "core/utf8.h"

namespace roofprof {

namespace {

constexpr std::size_t kDeepest = 100;

bool is_digit(char character) { return character >= '0' && character <= '9'; }

}  // namespace

// ---- tokens

void JsonReader::blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
    ++at_;
  }
}

char JsonReader::peek() {
  blanks();
  if (at_ == text_.size()) fail_here("a value");
  return text_[at_];
}

bool JsonReader::take(char character) {
  if (at_ == text_.size() || text_[at_] != character) return false;
  ++at_;
  return true;
}

bool JsonReader::take_word(std::string_view word) {
  if (peek() != word.front()) return false;
  if (text_.substr(at_, word.size()) != word) fail_here("a value");
  at_ += word.size();
  return true;
}

void JsonReader::digits() {
  if (at_ == text_.size() || !is_digit(text_[at_])) fail_here("a digit");
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
}

std::string_view JsonReader::number_text() {
  const char first = peek();
  if (first != '-' && !is_digit(first)) {
    static_cast<void>(raw());  // a text that is not JSON gets that error instead
    refuse_type("a number");
  }
  const std::size_t start = at_;
  take('-');
  if (!take('0')) digits();
  if (take('.')) digits();
  if (take('e') || take('E')) {
    if (!take('+')) take('-');
    digits();
  }
  return text_.substr(start, at_ - start);
}

std::string_view JsonReader::quoted() {
  if (!take('"')) fail_here("a quote");
  const std::size_t start = at_;
  has_escapes_ = false;
  while (at_ < text_.size()) {
    const auto code = static_cast<unsigned char>(text_[at_]);
    if (code == '"') return text_.substr(start, at_++ - start);
    if (code == '\\') {
      has_escapes_ = true;
      at_ += 2;
    } else if (code < 0x20) {
      fail("a string contains a control character");
    } else if (code < 0x80) {
      ++at_;
    } else {
      const std::size_t length = utf8_sequence(text_.substr(at_, 4));
      if (length == 0) fail("a string is not UTF-8");
      at_ += length;
    }
  }
  at_ = text_.size();
  fail_here("a quote");
}

std::uint32_t JsonReader::hex_digits(std::size_t at) const {
  std::uint32_t code = 0;
  const std::string_view digits = text_.substr(std::min(at, text_.size()), 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  const bool whole = digits.size() == 4 && error == std::errc{} && end == digits.data() + digits.size();
  if (!whole) fail("\\u is not followed by four hexadecimal digits");
  return code;
}

std::string_view JsonReader::decoded(std::string_view quoted_text) {
  decoded_.clear();
  const std::size_t end = at_;
  at_ -= quoted_text.size() + 1;
  while (at_ + 1 < end) {
    if (text_[at_] != '\\') {
      decoded_ += text_[at_++];
      continue;
    }
    constexpr std::string_view kCodes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char code = text_[at_ + 1];
    if (const std::size_t found = kCodes.find(code); found != std::string_view::npos) {
      decoded_ += kMeanings[found];
      at_ += 2;
      continue;
    }
    if (code != 'u') fail("a backslash is followed by none of \" \\ / b f n r t u");
    std::uint32_t point = hex_digits(at_ + 2);
    if (point >= 0xD800 && point < 0xE000) {
      const bool is_pair = point < 0xDC00 && text_.substr(at_ + 6, 2) == "\\u";
      const std::uint32_t low = is_pair ? hex_digits(at_ + 8) : 0;
      if (low < 0xDC00 || low > 0xDFFF) fail("a surrogate is unpaired");
      point = 0x10000 + ((point - 0xD800) << 10U) + (low - 0xDC00);
      at_ += 6;
    }
    append_utf8(decoded_, point);
    at_ += 6;
  }
  at_ = end;
  return decoded_;
}

// ---- objects and arrays

void JsonReader::open(char bracket, const char* kind) {
  if (peek() != bracket) {
    static_cast<void>(raw());
    refuse(std::string("is not ") + kind);
  }
  if (levels_.size() == kDeepest) fail("it nests deeper than " + std::to_string(kDeepest) + " levels");
  ++at_;
  levels_.push_back({.is_object = bracket == '{'});
}

void JsonReader::begin_object() { open('{', "an object"); }
void JsonReader::begin_array() { open('[', "a list"); }

// Moves to the next key or item. Returns false, and leaves the level, where none follows.
bool JsonReader::next(char closing) {
  blanks();
  Level& level = levels_.back();
  if (take(closing)) {
    levels_.pop_back();
    return false;
  }
  if (level.is_first) {
    level.is_first = false;
  } else {
    if (!take(',')) fail_here(std::string("a comma or ") + closing);
    ++level.index;
    blanks();
  }
  return true;
}

std::optional<std::string_view> JsonReader::next_key() {
  if (!next('}')) return std::nullopt;
  std::string_view key = quoted();
  levels_.back().key = key;
  if (has_escapes_) key = decoded(key);
  blanks();
  if (!take(':')) fail_here("a colon");
  return key;
}

bool JsonReader::next_item() { return next(']'); }

// ---- values

bool JsonReader::null() { return take_word("null"); }

bool JsonReader::boolean() {
  if (take_word("true")) return true;
  if (take_word("false")) return false;
  static_cast<void>(raw());
  refuse_type("true or false");
}

double JsonReader::number() {
  const std::string_view digits = number_text();
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) refuse_range(digits);
  return value;
}

std::string JsonReader::text() {
  if (!is_text()) {
    static_cast<void>(raw());
    refuse_type("a text");
  }
  const std::string_view found = quoted();
  return std::string(has_escapes_ ? decoded(found) : found);
}

bool JsonReader::is_text() { return peek() == '"'; }

bool JsonReader::is_integer() {
  const char first = peek();
  if (first != '-' && !is_digit(first)) return false;
  const std::size_t start = at_;
  const bool is_whole = number_text().find_first_of(".eE") == std::string_view::npos;
  at_ = start;
  return is_whole;
}

void JsonReader::skip() {
  switch (peek()) {
    case '{':
      begin_object();
      while (next_key()) skip();
      return;
    case '[':
      begin_array();
      while (next_item()) skip();
      return;
    case '"': {
      const std::string_view found = quoted();
      if (has_escapes_) static_cast<void>(decoded(found));
      return;
    }
    case 't':
    case 'f':
      static_cast<void>(boolean());
      return;
    case 'n':
      static_cast<void>(null());
      return;
    default:
      if (text_[at_] != '-' && !is_digit(text_[at_])) fail_here("a value");
      static_cast<void>(number_text());
  }
}

std::string_view JsonReader::raw() {
  static_cast<void>(peek());
  const std::size_t start = at_;
  skip();
  return text_.substr(start, at_ - start);
}

void JsonReader::finish() {
  blanks();
  if (at_ < text_.size()) fail("more text follows the outermost value");
}

}  // namespace roofprof

// Writes the reader's errors about a text that it refuses, and finds their place in the text.
namespace roofprof {

JsonSyntaxError::JsonSyntaxError(const std::string& problem, std::size_t line, std::size_t column)
    : JsonError("it is not JSON (line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + problem +
                ")"),
      line_(line),
      column_(column) {}

void JsonReader::fail(const std::string& problem) const {
  const std::string_view before = text_.substr(0, at_);
  const auto line = static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  throw JsonSyntaxError(problem, line, before.size() - line_start + 1);
}

void JsonReader::fail_here(const std::string& expected) const {
  if (at_ >= text_.size()) fail("the text ends where " + expected + " is expected");
  fail(expected + " is expected here");
}

std::string JsonReader::path() const {
  std::string path;
  for (const Level& level : levels_) {
    if (level.is_object) {
      if (level.key.data() == nullptr) continue;
      if (!path.empty()) path += '.';
      path += shown(level.key);
    } else if (!level.is_first) {
      path += '[' + std::to_string(level.index) + ']';
    }
  }
  return path;
}

void JsonReader::refuse(const std::string& problem) const {
  const std::string where = path();
  throw JsonError((where.empty() ? "its outermost value" : "'" + where + "'") + ' ' + problem);
}

void JsonReader::refuse_type(const std::string& expected) const {
  refuse("has the wrong type: it should be " + expected);
}

void JsonReader::refuse_range(std::string_view digits) const {
  refuse("is " + shown(digits) + ", which is out of range");
}

void JsonReader::lacks_key(std::string_view key) const {
  const std::string where = path();
  throw JsonError("it lacks the key '" + (where.empty() ? "" : where + '.') + std::string(key) + "'");
}

}  // namespace roofprof
