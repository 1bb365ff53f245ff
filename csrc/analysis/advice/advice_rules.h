#pragma once
// The rules of advice: one entry each, from the most special to the most general.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/profile_data.h"

namespace roofprof {

using NamedFigures = std::vector<std::pair<std::string, double>>;

// The calls of one op in one module, or in all of its equal siblings, which a rule may hold for.
struct AdviceCase {
  const ProfileData* data = nullptr;
  const GroupRow* ops = nullptr;        // with the sums of these calls; its op may be "(outside ops)"
  const OpBucket* bucket = nullptr;     // the calls of one signature with most time; null outside of ops
  const KernelBucket* older = nullptr;  // the longest of its kernels that were built for an older generation
  const Figures* total = nullptr;
};

// Why a rule holds, and how much time it is about.
struct AdviceReason {
  std::int64_t at_stake_ns = 0;
  NamedFigures figures;
};

// The share of the total's time below which a rule is silent: halving less gains less than times usually scatter from
// run to run.
inline constexpr double kLeastShare = 0.05;

// A rule with its sentence. The ops and modules that a sentence is about precede it: "aten::conv2d in stem and 3 more
// modules".
struct AdviceRule {
  std::string_view name;
  std::optional<AdviceReason> (*reason)(const AdviceCase&);
  std::string (*sentence)(const AdviceCase& largest, const NamedFigures& figures);
  std::string_view source;
  double least_share = kLeastShare;
  bool around_model = false;    // it also holds for code outside of the model
  std::string_view about = {};  // what stands before its sentence; empty: the ops that it holds for
  bool names_modules = true;
};

std::span<const AdviceRule> advice_rules();

// "(outside ops)" is where code on the host is between ops; "(idle device)" where a device waited for it.
inline constexpr std::string_view kIdleDevice = "(idle device)";

// The region in which a program waits for its data.
inline constexpr std::string_view kDataLoading = "(data loading)";

}  // namespace roofprof
