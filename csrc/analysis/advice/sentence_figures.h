#pragma once
// The figures that call for an advice, as its sentence writes them.

#include <string>
#include <string_view>

#include "analysis/advice/advice_rules.h"

namespace roofprof::sentences {

// Three significant digits: "0.123", "8.10", "2.05M".
std::string number(double value);
// 0 where there is none of that name.
double value_of(const NamedFigures& figures, std::string_view name);
std::string text_of(const NamedFigures& figures, std::string_view name);
// "12.3% of the roof"
std::string percent_of_roof(const NamedFigures& figures);
// "12 us", "1.20 ms"
std::string text_of_microseconds(double us);

}  // namespace roofprof::sentences
