#pragma once
// Describes a run, block or trace. The code that observed it fills this in, and the profile keeps it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofprof/report.h"
#include "roofprof/work.h"

namespace roofprof {

// The kind of run: calls of a model that are timed, one that is counted alone, or a block of the user's code.
enum class Mode : std::uint8_t { run, count, block };
inline constexpr std::array<std::string_view, 3> kModeNames = {"run", "count", "block"};

// Calls of a language model that are one of its phases, in the counting call or in a block.
struct TokenCalls {
  std::string region = {};  // "prefill", "decode"
  std::int64_t calls = 0;
  std::int64_t sequences = 0;      // of all calls together: batch sizes added up
  std::int64_t tokens = 0;         // new ones, of all sequences together
  std::int64_t least_context = 0;  // tokens of a sequence that a call attends to, cached and new; -1: not known
  std::int64_t most_context = 0;
  std::int64_t cache_bytes = 0;   // most that the cache held when a call began
  std::int64_t weight_bytes = 0;  // parameters of what was called, tied ones once

  bool operator==(const TokenCalls&) const = default;
};

// The number of steps of a block that get times; all are counted.
inline constexpr std::size_t kStepsTimed = 10'000;

// The work and time of a block outside of its steps: after the last one, or between them.
struct AfterSteps {
  std::int64_t wall_ns = 0;  // by the host's clock
  Work work = {};

  bool operator==(const AfterSteps&) const = default;
};

struct Runs {
  std::vector<std::int64_t> total_ns = {};  // wall time of each timed run under observation
  std::int64_t chosen = -1;                 // the run that the rows come from: the median one; -1: none
  std::vector<std::int64_t> bare_ns = {};   // wall time of runs without any observer
  std::int64_t warmup = 0;
  std::int64_t steps = 0;                      // prof.step() calls of a block; 0: not marked
  std::vector<std::int64_t> step_ns = {};      // of the first kStepsTimed of them; empty: not timed
  std::optional<AfterSteps> after_steps = {};  // empty: not known, or no steps
  bool beside_others = false;                  // other processes were busy meanwhile, whether or not a note says so

  bool operator==(const Runs&) const = default;
};

// The steps of a trace, by the numbers that it gives them.
struct RecordedSteps {
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool operator==(const RecordedSteps&) const = default;
};
std::string text_of(const RecordedSteps& steps);  // "4-6"

// The keys of an environment's facts that are written elsewhere, too.
namespace fact_keys {
inline constexpr std::string_view kTorch = "torch";
inline constexpr std::string_view kGpu = "gpu_device";
inline constexpr std::string_view kRank = "rank";
inline constexpr std::string_view kWorldSize = "world_size";
inline constexpr std::string_view kHost = "host";
inline constexpr std::string_view kBoot = "boot";
inline constexpr std::string_view kRecordedSteps = "recorded_steps";
inline constexpr std::string_view kHostBeforeLaunches = "host_before_launches";
}  // namespace fact_keys

// The facts of an environment that code asks for; a text is empty, a number is missing where it says nothing.
struct EnvironmentFacts {
  std::string torch = {};      // its version
  std::string processor = {};  // "device"
  std::string gpu = {};        // "gpu_device"
  std::optional<std::int64_t> torch_threads = {};
  std::optional<std::int64_t> rank = {};
  std::optional<std::int64_t> world_size = {};
  std::string host = {};
  std::string boot = {};  // the same for all processes between two starts of a machine
  std::optional<RecordedSteps> recorded_steps = {};
  // Of a trace: what the host ran before the first launch, for most of that time.
  std::string host_before_launches = {};

  bool operator==(const EnvironmentFacts&) const = default;
};
EnvironmentFacts facts_in(const Environment& environment);
// Returns whether the fact is another one on each rank of a program.
bool is_of_one_rank(std::string_view key);

struct RunInfo {
  std::string model = {};   // the model's type, for titles
  std::string device = {};  // "cpu", "cuda:0", "meta"
  Mode mode = Mode::run;
  bool partial = false;       // an exception ended it; what ran before is here
  bool bypass_sought = true;  // work that bypasses the dispatcher was looked for; C++'s profiler does not
  std::vector<TokenCalls> token_calls = {};  // of language models, by region
  Runs runs = {};
  Environment environment = {};

  bool operator==(const RunInfo&) const = default;
};

}  // namespace roofprof
