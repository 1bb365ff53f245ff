#pragma once
// The rules of findings: one entry each, from the most special to the most general.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/profile.h"

namespace roofprof {

using NamedFigures = std::vector<std::pair<std::string, double>>;

// CallsInModule counts the calls of a module and of what is in it.
struct CallsInModule {
  std::int64_t forwards = 0;        // calls of the module
  std::int64_t ops = 0;             // calls of ops that no module inside called
  std::int64_t reads_on_host = 0;   // those of them that read values on the host
  std::int64_t modules_inside = 0;  // calls of the modules right below it
  std::int64_t own_ns = 0;          // time of the module without those inside, in the run that the rows come from
  std::int64_t longer_ns = 0;       // how much longer this is than in the median run
};

// KernelsOfOp has what the kernels of an op show.
struct KernelsOfOp {
  const KernelBucket* older = nullptr;  // the longest of those that were built for an older generation
  std::int64_t reordered_ns = 0;        // the time of those that only change the order of channels
};

// The calls of one op in one module, or in all of its equal siblings, which a rule may hold for.
struct FindingCase {
  const Profile* data = nullptr;
  const GroupRow* ops = nullptr;     // with the sums of these calls; its op may be "(outside ops)"
  const OpBucket* bucket = nullptr;  // the calls of one signature with most time; null outside of ops
  KernelsOfOp kernels;
  CallsInModule calls;
  const Figures* total = nullptr;
  bool compiled = false;  // some code of the profile was compiled
};

// Why a rule holds, and how much time it is about.
struct FindingReason {
  std::int64_t at_stake_ns = 0;
  NamedFigures figures;
};

// Said is the text of a rule: the fault, and what to do about it.
struct Said {
  std::string what;
  std::string action;
  std::string try_it = {};  // in place of the rule's
};

// Gain tells how much of the time at stake the action saves, and what that is known from.
struct Gain {
  double low = 0;   // shares of the time at stake
  double high = 1;  // may be more than 1, where the time at stake is less than that of the ops
  std::string_view basis;
  Confidence confidence = Confidence::medium;
  std::string_view because;
};

// The share of the total's time below which a rule is silent: halving less gains less than times usually scatter from
// run to run.
inline constexpr double kLeastShare = 0.05;

// A rule with its sentence. The ops and modules that a sentence is about precede it: "aten::conv2d in stem and 3 more
// modules".
struct FindingRule {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of reading
  std::string_view name;
  std::optional<FindingReason> (*reason)(const FindingCase&);
  Said (*sentence)(const FindingCase& largest, const NamedFigures& figures);
  std::string_view reference;
  Gain gain;
  std::string_view try_it = {};  // Python code
  double least_share = kLeastShare;
  bool around_model = false;    // it also holds for code outside of the model
  std::string_view about = {};  // what stands before its sentence; empty: the ops that it holds for
  bool names_modules = true;
  bool each_op_alone = false;     // each op that takes least_share becomes a separate finding
  bool calls_less_often = false;  // what it proposes may save the time outside of ops, too
};

std::span<const FindingRule> finding_rules();

// Two rules with one cause: where both hold, they are one finding.
inline constexpr std::string_view kOutsideRule = "outside-ops";
inline constexpr std::string_view kShortCalls = "short-calls";

// Code that compiles the model.
inline constexpr std::string_view kCompileIt = "model = torch.compile(model)";

// Code that changes the type of the model and of an input, which may hold numbers of tokens.
inline constexpr std::string_view kToFp32 = "model = model.float(); x = x.float() if x.is_floating_point() else x";

// "(outside ops)" is where code on the host is between ops; "(idle device)" where a device waited for it.
inline constexpr std::string_view kIdleDevice = "(idle device)";

// The region in which a program waits for its data.
inline constexpr std::string_view kDataLoading = "(data loading)";

// Sets what depends on the run: a gain within the time of all, and no more confidence than its conditions allow.
void complete(Finding& finding, const Gain& gain, std::int64_t at_stake_ns, const Profile& data,
              const RooflineRow& total);

}  // namespace roofprof
