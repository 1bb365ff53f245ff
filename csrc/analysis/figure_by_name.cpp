// A row's figures by the names that columns, or JSON and CSV, have for them.

#include <type_traits>

#include "analysis/closest.h"
#include "core/fields.h"
#include "roofprof/report.h"

namespace roofprof {
namespace {

template <class Value>
constexpr bool is_number_or_none = std::is_arithmetic_v<Value>;
template <class Value>
constexpr bool is_number_or_none<std::optional<Value>> = std::is_arithmetic_v<Value>;

// Empty where it is not known.
template <class Value>
std::optional<double> as_number(const Value& value) {
  if constexpr (std::is_arithmetic_v<Value>) {
    return static_cast<double>(value);
  } else {
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
  }
}

template <class Row>
std::optional<double> number_named(const Row& row, std::string_view name) {
  std::optional<double> number;
  bool found = false;
  std::vector<std::string> numbers;
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto value_of) {
    using Value = std::remove_cvref_t<decltype(value_of(row))>;
    if constexpr (is_number_or_none<Value>) {
      numbers.push_back(info.name_in(of_self));
      if (!info.is_called(name, of_self)) return;
      found = true;
      number = as_number(value_of(row));
    } else if (info.is_called(name, of_self)) {
      throw InvalidArgument("'" + std::string(name) + "' is no number; read the row's member of that name");
    }
  });
  if (found) return number;
  throw InvalidArgument("no figure '" + std::string(name) + "'; the closest are " + closest(name, numbers));
}

}  // namespace

std::optional<double> Figures::figure(std::string_view name) const { return number_named(*this, name); }
std::optional<double> RooflineRow::figure(std::string_view name) const { return number_named(*this, name); }
std::optional<double> GroupRow::figure(std::string_view name) const { return number_named(*this, name); }
std::optional<double> KernelRow::figure(std::string_view name) const { return number_named(*this, name); }

}  // namespace roofprof
