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

inline Rules rules_of(const ProfileBuilder& net) { return rules_of(net.derived()); }

// One op that a model ran.
struct Ran {
  std::string op;
  Work work;
  std::int64_t time_ns;
  std::string shapes = "";
  bool channels_first = false;
  std::int64_t calls = 1;
};

// Returns a model that ran these ops, and nothing for so long.
inline ProfileBuilder model_of(const std::vector<Ran>& ops, std::int64_t outside_ns = 0) {
  ProfileBuilder net;
  for (const auto& ran : ops) {
    auto& bucket = net.op(ran.op, kModel, ran.work, ran.time_ns);
    bucket.shapes = shapes(ran.shapes);
    bucket.channels_first = ran.channels_first;
    bucket.calls = ran.calls;
    outside_ns += ran.time_ns;
  }
  net.time(kModel, {outside_ns});
  return net;
}

// Returns the work of an op that computes nothing but element by element.
inline Work per_element(std::int64_t elements, std::int64_t flops, std::int64_t bytes) {
  Work work = work_of(flops, bytes / 2, bytes - bytes / 2);
  work.macs = work.causal_macs = 0;
  work.input_elements = work.output_elements = elements;
  return work;
}

}  // namespace roofprof::testing
