#include "report/columns.h"

#include <algorithm>

#include "core/phrases.h"

namespace roofprof {

std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::ranges::transform(lowered, lowered.begin(), lower);
  return lowered;
}

std::string cell_text(const Value& value, Unit unit) {
  if (is_textual(unit)) return value.text;
  if (!value.number) return "n/a";
  const double number = *value.number;
  switch (unit) {
    case Unit::bytes:
      return human_bytes(number, "");
    case Unit::nanoseconds:
      return human_time(number, "");
    case Unit::percent:
      return human_percent(number);
    case Unit::fraction:
      return human_percent(100 * number);
    case Unit::ratio:
    case Unit::flops_per_byte:
      return human_ratio(number);
    default:
      return human_count(number, "", "");
  }
}

}  // namespace roofprof
