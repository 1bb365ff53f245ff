#include "report/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/utf8.h"

namespace roofprof {

namespace {

std::string escaped(char character) {
  switch (character) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(character);
  return code < 0x20 || code == 0x7F ? fmt::format("\\u{:04x}", code) : std::string(1, character);
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) {
      result += "\\ufffd";
    } else if (length == 1) {
      result += escaped(text.front());
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result + '"';
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{}", value);
  // Readers tell integers and floats apart by the text.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace roofprof
