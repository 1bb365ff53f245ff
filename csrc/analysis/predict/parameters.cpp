#include "analysis/predict/parameters.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <type_traits>

#include "core/json/members.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

// Sorts the classes in the order of the enumeration, so that a class is found by its number.
void put_in_order(std::vector<ClassParameters>& classes, std::string_view name) {
  std::vector<ClassParameters> ordered;
  for (const auto known : kOpClassNames) {
    const auto found = std::ranges::find(classes, known, &ClassParameters::name);
    if (found == classes.end()) {
      throw InvalidArgument("the prediction's parameters of '" + std::string(name) + "' lack the class '" +
                            std::string(known) + "'");
    }
    ordered.push_back(*found);
  }
  classes = std::move(ordered);
}

// Returns the number at a path of members' names; null: there is none.
template <HasMembers Struct>
double* number_at(Struct& object, std::string_view path) {
  const auto dot = path.find('.');
  const auto first = path.substr(0, dot);
  const auto rest = dot == path.npos ? std::string_view() : path.substr(dot + 1);
  double* found = nullptr;
  for_each_member(Of<Struct>{}, [&](std::string_view name, auto member, Written) {
    if (name != first) return;
    using Value = std::remove_cvref_t<decltype(object.*member)>;
    if constexpr (std::same_as<Value, double>) {
      if (rest.empty()) found = &(object.*member);
    } else if constexpr (HasMembers<Value>) {
      found = number_at(object.*member, rest);
    }
  });
  return found;
}

}  // namespace

const AchievedShare& or_usual(const AchievedShare* achieved) {
  static const AchievedShare kUsual;
  return achieved != nullptr ? *achieved : kUsual;
}

void set_number(std::string_view name, double value, GpuParameters& gpu, AchievedShare& achieved) {
  constexpr std::string_view kAchieved = "achieved.";
  double* number = nullptr;
  if (name.starts_with(kAchieved)) {
    number = number_at(achieved, name.substr(kAchieved.size()));
  } else if (const auto of_class =
                 std::ranges::find(gpu.classes, name.substr(0, name.find('.')), &ClassParameters::name);
             of_class != gpu.classes.end() && name.find('.') != name.npos) {
    number = number_at(*of_class, name.substr(name.find('.') + 1));
  } else {
    number = number_at(gpu, name);
  }
  if (number == nullptr) {
    throw InvalidArgument("the prediction has no number '" + shown(name) + "', which the roofs' calibration gives");
  }
  if (!(value > 0) || !std::isfinite(value)) {
    throw InvalidArgument("the calibration's number '" + shown(name) + "' must be above 0, not " +
                          short_text(value, 6));
  }
  *number = value;
}

const AchievedShare* PredictionParameters::achieved_on(std::string_view compute_capability) const {
  const auto found = std::ranges::find(achieved, compute_capability, &AchievedShare::compute_capability);
  return found == achieved.end() ? nullptr : &*found;
}

PredictionParameters PredictionParameters::parsed(std::string_view text) {
  PredictionParameters parameters;
  JsonReader json(text);
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "parameters") {
      read_value(json, parameters);
    } else {
      json.skip();
    }
  }
  json.finish();
  put_in_order(parameters.gpu.classes, "gpu");
  put_in_order(parameters.cpu.classes, "cpu");
  return parameters;
}

const PredictionParameters& PredictionParameters::shipped() {
  static const PredictionParameters parameters = parsed(kPredictionParameters);
  return parameters;
}

const ClassParameters& parameters_of(const std::vector<ClassParameters>& classes, OpClass op) {
  return classes.at(static_cast<std::size_t>(op));
}

}  // namespace roofprof
