#pragma once
// The table of the rules of findings, and what a rule says.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/finding_case.h"
#include "core/profile.h"

namespace roofprof {

// Evidence is a figure that calls for a finding. Counts, flags and kinds of things are numbers in it, as JSON has them.
struct Evidence {
  template <class Number>
  Evidence(std::string_view named, Number number) : name(named), value(static_cast<double>(number)) {}

  std::string_view name;
  double value;
};

// Gain tells how much of the time at stake the action saves, and what that is known from.
struct Gain {
  double low = 0;   // shares of the time at stake
  double high = 1;  // may be more than 1, where the time at stake is less than that of the ops
  std::string_view basis = {};
  Confidence confidence = Confidence::medium;
  std::string_view because = {};
};

// The answer of a rule that holds.
struct Ruling {
  std::int64_t at_stake_ns = 0;  // how much time it is about
  std::vector<Evidence> evidence = {};
  std::string text = {};    // what is wrong; the ops and modules stand before it: "aten::conv2d in stem: "
  std::string action = {};  // what to do
  std::string try_it = {};  // Python code; empty where none is short
  Gain gain = {};
  std::string_view reference = {};  // where the rule is from
};

// The type of a rule: `Rule reads_on_host;` declares one. It is asked about each case, and once more about the one with
// most at stake, for all cases of the finding: whether it holds must not depend on where.all, which is known only then.
using Rule = std::optional<Ruling>(const FindingCase& where);

// The share of the total's time below which a rule is silent: halving less gains less than times usually scatter from
// run to run.
inline constexpr double kLeastShare = 0.05;

// A line of the table.
struct FindingRule {
  std::string_view name;
  Rule* holds;
  std::string_view about = {};  // what stands before its text; empty: the ops that it holds for
  double least_share = kLeastShare;
  bool names_modules = true;
  bool around_model = false;      // it also holds for code outside of the model
  bool each_op_alone = false;     // each op that takes least_share becomes a separate finding
  bool calls_less_often = false;  // what it proposes may save the time outside of ops, too
};

// Returns the rules, from the most special to the most general; the first that holds for a case makes the finding.
std::span<const FindingRule> finding_rules();

// Two rules with one cause: where both hold, they are one finding.
inline constexpr std::string_view kOutsideRule = "outside-ops";
inline constexpr std::string_view kShortCalls = "short-calls";

// The sources that gains are known from.
inline constexpr std::string_view kLowerBound = "lower bound";
inline constexpr std::string_view kMeasuredModels = "measured on other models (docs/findings.md)";
inline constexpr std::string_view kTimesOfReport = "the time that it took";
inline constexpr std::string_view kRoofOfOther = "other precision's roof";

// Code that compiles the model.
inline constexpr std::string_view kCompileIt = "model = torch.compile(model)";

// Code that changes the type of the model and of an input, which may hold numbers of tokens.
inline constexpr std::string_view kToFp32 = "model = model.float(); x = x.float() if x.is_floating_point() else x";

// Sets what depends on the run: a gain within the time of all, and no more confidence than its conditions allow.
void complete(Finding& finding, const Gain& gain, std::int64_t at_stake_ns, const Profile& data,
              const RooflineRow& total);

}  // namespace roofprof
