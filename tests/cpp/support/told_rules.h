#pragma once
// What tests of findings ask of a report, and the work that they give it.

#include <cstdint>
#include <string>
#include <vector>

#include "support/profile_builder.h"

namespace roofprof::testing {

using Rules = std::vector<std::string>;

// Returns the rules of the findings, in their order.
inline Rules rules_of(const Derived& report) {
  Rules rules;
  for (const auto& finding : report.findings()) rules.push_back(finding.rule);
  return rules;
}

// Returns the work of an op that computes nothing but element by element.
inline Work per_element(std::int64_t elements, std::int64_t flops, std::int64_t bytes) {
  Work work = work_of(flops, bytes / 2, bytes - bytes / 2);
  work.macs = work.causal_macs = 0;
  work.input_elements = work.output_elements = elements;
  return work;
}

}  // namespace roofprof::testing
