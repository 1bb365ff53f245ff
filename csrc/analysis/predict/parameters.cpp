#include "analysis/predict/parameters.h"

#include <algorithm>
#include <stdexcept>

#include "core/json/members.h"

namespace roofprof {

namespace {

// Sorts the classes in the order of the enumeration, so that a class is found by its number.
void put_in_order(KindParameters& kind, std::string_view name) {
  std::vector<ClassParameters> ordered;
  for (const auto known : kOpClassNames) {
    const auto found = std::ranges::find(kind.classes, known, &ClassParameters::name);
    if (found == kind.classes.end()) {
      throw std::invalid_argument("the prediction's parameters of '" + std::string(name) + "' lack the class '" +
                                  std::string(known) + "'");
    }
    ordered.push_back(*found);
  }
  kind.classes = std::move(ordered);
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
  put_in_order(parameters.gpu, "gpu");
  put_in_order(parameters.cpu, "cpu");
  return parameters;
}

const PredictionParameters& PredictionParameters::shipped() {
  static const PredictionParameters parameters = parsed(kPredictionParameters);
  return parameters;
}

const ClassParameters& parameters_of(const KindParameters& kind, OpClass op) {
  return kind.classes.at(static_cast<std::size_t>(op));
}

}  // namespace roofprof
