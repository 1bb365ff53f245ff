// The table of scenarios through C++'s front end. With ROOFPROF_SCENARIOS=FILE the reports are written there as JSON,
// for tests/python/run/test_scenarios.py to compare with those of Python's front end.

#include <gtest/gtest.h>
#include <torch/nn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "roofprof/profiler.h"
#include "run/scenario_table.h"
#ifdef ROOFPROF_FAKES
#include "support/fake_libraries.h"
#endif

namespace roofprof {
namespace {

using testing::Scenario;
using torch::Tensor;

struct ScenarioModel : torch::nn::Module {
  explicit ScenarioModel(const Scenario& scenario)
      : script(scenario),
        fc(register_module("fc", torch::nn::Linear(torch::nn::LinearOptions(8, 4).bias(false)))),
        seen(register_buffer("seen", torch::zeros({1}))) {}

  Tensor forward(Tensor x) {
    const torch::NoGradGuard no_grad;
    ++calls;
    seen.add_(1);
    x.add_(1);
    auto y = fc(x);
    if (script.model == "raises" && calls == script.at) throw std::runtime_error("no");
    if (script.model == "other work" && calls >= script.at) y = torch::relu(y);
    if (script.model == "sets up" && calls < script.at) y = torch::relu(y);
    if (script.model == "grows") cache = cache.defined() ? torch::cat({cache, y}) : y;
#ifdef ROOFPROF_FAKES
    if (script.model == "lost") {
      FakeLaunch launch{};
      launch.name = "simulated";
      launch.duration_ns = 1000;
      for (int axis = 0; axis < 3; ++axis) launch.grid[axis] = launch.block[axis] = 1;
      fake_launch(&launch);
      if (calls == script.at) fake_fail("cuCtxSynchronize", 999, 0);
    }
#endif
    return cache.defined() ? cache.mm(cache.t()) : y;
  }
  Tensor forward(Tensor x, std::unique_ptr<int> /*used_up*/) { return forward(x); }

  Scenario script;
  torch::nn::Linear fc;
  Tensor seen;
  Tensor cache;
  std::int64_t calls = 0;
};

ProfilerOptions options_for(const Scenario& scenario) {
  ProfilerOptions options;
  options.warmup = scenario.limits.warmup;
  options.repeat = scenario.limits.repeat;
  options.ceilings = Ceilings{};
  options.counters = Counters::off;
  if (scenario.model == "lost") options.device = "cuda";
  return options;
}

bool is_of_the_loop(const Note& note) {
  constexpr std::array kCodes = {"timing-stopped", "timed-once", "state-not-restored", "first-call"};
  return std::ranges::find(kCodes, note.code) != kCodes.end();
}

#ifdef ROOFPROF_FAKES
class CppFrontEnd : public WithFakes, public ::testing::WithParamInterface<Scenario> {
#else
class CppFrontEnd : public ::testing::TestWithParam<Scenario> {
#endif
 protected:
  static void TearDownTestSuite() {
    const char* path = std::getenv("ROOFPROF_SCENARIOS");
    if (path == nullptr) return;
    std::ofstream file(path);
    file << "{" << reports() << "}\n";
  }
  static void add(const Scenario& scenario, const ScenarioModel& model, const Tensor& x, bool raised,
                  const Report& report) {
    auto& text = reports();
    text += (text.empty() ? "\"" : ",\n\"") + scenario.name + "\": {\"calls\": " + std::to_string(model.calls) +
            ", \"raised\": " + (raised ? "true" : "false") + ", \"seen\": " + std::to_string(model.seen.item<float>()) +
            ", \"input\": " + std::to_string(x[0][0].item<float>()) + ", \"report\": " + report.to_json() + "}";
  }

 private:
  static std::string& reports() {
    static std::string text;
    return text;
  }
};

TEST_P(CppFrontEnd, DoesWhatTheTableSays) {
  const auto& scenario = GetParam();
#ifndef ROOFPROF_FAKES
  if (scenario.model == "lost") GTEST_SKIP() << "the fake libraries are not built";
#endif
  if (scenario.model == "interrupts") GTEST_SKIP() << "only Python has errors that end a program";
  ScenarioModel model(scenario);
  RooflineProfiler prof(model, options_for(scenario));
  auto x = torch::zeros({2, 8});
  bool raised = false;
  try {
    scenario.model == "used up" ? prof.run(x, std::make_unique<int>(1)) : prof.run(x);
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no");
    raised = true;
  }
  const auto report = prof.report();
  EXPECT_EQ(model.calls, scenario.calls);
  EXPECT_EQ(data_of(report).run.runs.warmup, scenario.warmup);
  EXPECT_EQ(std::ssize(report.run_times_ns()), scenario.timed);
  EXPECT_EQ(std::ssize(report.bare_times_ns()), scenario.bare);
  EXPECT_EQ(report.partial(), scenario.ends == "partial");
  EXPECT_EQ(raised, scenario.ends != "well");
  EXPECT_EQ(report.total().macs, scenario.model == "grows" ? 2 * 8 * 4 + 2 * 4 * 2 : 2 * 8 * 4);
  std::vector<std::string> notes;
  for (const auto& note : report.coverage().notes) {
    if (is_of_the_loop(note)) notes.push_back(note.text);
  }
  const auto note = testing::expected_note(scenario, "std::runtime_error: no",
                                           "an argument can only be moved, and further calls would find it empty");
  EXPECT_EQ(notes, note.empty() ? std::vector<std::string>() : std::vector{note});
  EXPECT_EQ(model.seen.item<float>(), 1) << "as one call leaves it";
  EXPECT_EQ(x[0][0].item<float>(), 1);
  add(scenario, model, x, raised, report);
}

INSTANTIATE_TEST_SUITE_P(Table, CppFrontEnd, ::testing::ValuesIn(testing::read_scenarios()), testing::test_name);

}  // namespace
}  // namespace roofprof
