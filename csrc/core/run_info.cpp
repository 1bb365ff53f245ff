#include "core/run_info.h"

#include <charconv>
#include <system_error>
#include <variant>

namespace roofprof {
namespace {

// Takes a fact that is of that type.
template <class Value, class To>
void take(const EnvironmentValue& fact, To& to) {
  if (const auto* value = std::get_if<Value>(&fact)) to = *value;
}

std::optional<RecordedSteps> steps_in(std::string_view text) {
  RecordedSteps steps;
  const auto first = std::from_chars(text.data(), text.data() + text.size(), steps.first);
  const auto rest = text.substr(static_cast<std::size_t>(first.ptr - text.data()));
  if (first.ec != std::errc() || rest.empty()) return std::nullopt;
  const auto last = std::from_chars(rest.data() + 1, rest.data() + rest.size(), steps.last);
  if (last.ec != std::errc()) return std::nullopt;
  return steps;
}

}  // namespace

std::string text_of(const RecordedSteps& steps) {
  return std::to_string(steps.first) + "-" + std::to_string(steps.last);
}

EnvironmentFacts facts_in(const Environment& environment) {
  EnvironmentFacts facts;
  std::string steps;
  for (const auto& [key, value] : environment) {
    if (key == fact_keys::kTorch) take<std::string>(value, facts.torch);
    if (key == "device") take<std::string>(value, facts.processor);
    if (key == fact_keys::kGpu) take<std::string>(value, facts.gpu);
    if (key == "torch_threads") take<std::int64_t>(value, facts.torch_threads);
    if (key == fact_keys::kRank) take<std::int64_t>(value, facts.rank);
    if (key == fact_keys::kWorldSize) take<std::int64_t>(value, facts.world_size);
    if (key == fact_keys::kHost) take<std::string>(value, facts.host);
    if (key == fact_keys::kBoot) take<std::string>(value, facts.boot);
    if (key == fact_keys::kRecordedSteps) take<std::string>(value, steps);
    if (key == fact_keys::kHostBeforeLaunches) take<std::string>(value, facts.host_before_launches);
  }
  facts.recorded_steps = steps_in(steps);
  return facts;
}

bool is_of_one_rank(std::string_view key) {
  return key == fact_keys::kRank || key == fact_keys::kHost || key == fact_keys::kBoot ||
         key == fact_keys::kRecordedSteps;
}

}  // namespace roofprof
