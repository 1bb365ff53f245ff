#pragma once
// Is this text JSON? A recogniser of the grammar (RFC 8259), so that the writer is not its own judge.

#include <cctype>
#include <string_view>

namespace roofprof::testing {

class JsonChecker {
 public:
  explicit JsonChecker(std::string_view text) : text_(text) {}
  bool whole() {
    const bool valid = value();
    blanks();
    return valid && text_.empty();
  }

 private:
  void blanks() {
    while (!text_.empty() && std::string_view(" \n\r\t").find(text_[0]) != std::string_view::npos) skip(1);
  }
  void skip(std::size_t count) { text_.remove_prefix(count); }
  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    skip(word.size());
    return true;
  }
  bool digits() {
    const std::size_t before = text_.size();
    while (!text_.empty() && std::isdigit(static_cast<unsigned char>(text_[0]))) skip(1);
    return text_.size() < before;
  }
  bool number() {
    take("-");
    if (!digits()) return false;
    if (take(".") && !digits()) return false;
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      return digits();
    }
    return true;
  }
  bool string() {
    if (!take("\"")) return false;
    while (!text_.empty()) {
      if (take("\"")) return true;
      if (static_cast<unsigned char>(text_[0]) < 0x20) return false;
      if (take("\\") && !escape()) return false;
      skip(1);
    }
    return false;
  }
  // Leaves the last character of the escape sequence to be skipped.
  bool escape() {
    if (text_.empty()) return false;
    if (text_[0] != 'u') return std::string_view("\"\\/bfnrt").find(text_[0]) != std::string_view::npos;
    if (text_.size() < 5) return false;
    for (const char digit : text_.substr(1, 4)) {
      if (!std::isxdigit(static_cast<unsigned char>(digit))) return false;
    }
    skip(4);
    return true;
  }
  bool sequence(std::string_view end, bool keyed) {
    blanks();
    if (take(end)) return true;
    do {
      blanks();
      if (keyed && !(string() && (blanks(), take(":")))) return false;
      if (!value()) return false;
      blanks();
    } while (take(","));
    return take(end);
  }
  bool value() {
    blanks();
    if (text_.empty()) return false;
    if (text_[0] == '"') return string();
    if (take("{")) return sequence("}", true);
    if (take("[")) return sequence("]", false);
    return take("true") || take("false") || take("null") || number();
  }

  std::string_view text_;
};

inline bool is_json(std::string_view text) { return JsonChecker(text).whole(); }

}  // namespace roofprof::testing
