#pragma once
// Describes the origin of a profile's figures: a run, a trace, a prediction, several ranks.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "roofprof/dtype.h"
#include "roofprof/prediction.h"
#include "roofprof/ranks.h"

namespace roofprof {

struct Profile;

// The run was not observed here: other code recorded a trace of it.
struct Imported {
  std::string source = {};  // "torch.profiler (...)"

  bool operator==(const Imported&) const = default;
};

// The profile has what ran in one region alone.
struct Part {
  std::string region = {};  // "inner within outer": a part of a part

  bool operator==(const Part&) const = default;
};

// One process ran it, and was timed if it has times.
struct OneRun {
  bool operator==(const OneRun&) const = default;
};

// Its times are those that another device is expected to take, under these options.
struct Predicted {
  std::optional<DType> precision = {};  // that what was counted was changed to
  std::optional<std::int64_t> batch = {};
  bool counted_under_autocast = false;
  std::optional<DType> autocast = {};  // as autocast in that type runs it
  bool channels_last = false;
  LaunchMode mode = LaunchMode::eager;
  std::optional<double> host_seconds = {};  // of an op's launch, in place of the default
  double bandwidth = 1;                     // times the device's own
  double peak = 1;
  std::int64_t ranks = 1;  // it is one of so many
  Parallel parallel = Parallel::ddp;

  bool operator==(const Predicted&) const = default;
};

// Returns the options in words: "in fp16, batch 8"; "as it was counted" where there are none.
std::string words_of(const Predicted& options);

// A module's time over the ranks that have it, or the total's.
struct TimeOverRanks {
  std::int64_t ranks = 0;
  std::int64_t min_ns = 0;
  std::int64_t median_ns = 0;
  std::int64_t max_ns = 0;
  double mean_ns = 0;
  std::int64_t slowest = 0;  // the rank that took longest; of equal ones the first

  bool operator==(const TimeOverRanks&) const = default;
};

struct ModuleOverRanks {
  ModuleId module = kModel;
  TimeOverRanks time = {};

  bool operator==(const ModuleOverRanks&) const = default;
};

// A rank's own profile, as a merged one keeps it.
struct KeptReport {
  std::int64_t rank = 0;
  std::shared_ptr<const Profile> report;

  bool operator==(const KeptReport& other) const;
};

// It is merged of several ranks' profiles: its figures are sums over ranks, but for these.
struct MergedRanks {
  std::vector<Rank> ranks = {};  // in order, at least one
  std::vector<std::int64_t> missing = {};
  TimeOverRanks total = {};  // of 0 ranks: not known
  std::vector<ModuleOverRanks> modules = {};
  std::vector<KeptReport> kept = {};  // of the slowest rank and the median one

  bool operator==(const MergedRanks&) const = default;
};

// The origin of a profile's figures. A prediction is made of one process's profile, and predictions are not merged. A
// measured or predicted profile may be imported, and any profile may be a part.
struct Origin {
  std::variant<OneRun, Predicted, MergedRanks> kind;
  std::optional<Imported> imported = {};  // empty: it was observed here
  std::optional<Part> part = {};          // empty: it has everything that was observed

  // Return null where it is of another kind.
  const Predicted* predicted() const { return std::get_if<Predicted>(&kind); }
  const MergedRanks* merged() const { return std::get_if<MergedRanks>(&kind); }

  bool operator==(const Origin&) const = default;
};

}  // namespace roofprof
