#include "analysis/predict/parameters.h"

#include <algorithm>
#include <stdexcept>

#include "core/json/members.h"

namespace roofprof {

namespace {

// Sorts the classes in the order of the enumeration, so that a class is found by its number.
void put_in_order(std::vector<ClassParameters>& classes, std::string_view name) {
  std::vector<ClassParameters> ordered;
  for (const auto known : kOpClassNames) {
    const auto found = std::ranges::find(classes, known, &ClassParameters::name);
    if (found == classes.end()) {
      throw std::invalid_argument("the prediction's parameters of '" + std::string(name) + "' lack the class '" +
                                  std::string(known) + "'");
    }
    ordered.push_back(*found);
  }
  classes = std::move(ordered);
}

}  // namespace

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
