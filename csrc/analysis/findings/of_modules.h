#pragma once
// Findings on whole modules: what fusion would save, what nothing reads, what compiling the model brings, and where a
// device had not begun.

#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/findings/finding_rules.h"
#include "analysis/siblings/siblings.h"
#include "core/profile.h"

namespace roofprof {

// Returns the finding on modules whose ops would move far fewer bytes if they were fused; empty where fusing saves less
// than a twentieth of the time, where code was compiled, and in predicted reports. It names the modules that gain by
// fusing their own ops with those of the modules below them, none of them inside another one. `lines` have equal
// siblings as one, `rows` are those of `data`.
std::optional<Finding> finding_on_fusion(const Profile& data, const std::vector<FoldedRow>& lines,
                                         const std::vector<RooflineRow>& rows, const RooflineRow& total);

// Returns the finding on modules of which no op reads what they return; empty where these take less than a twentieth of
// the time, and where that is not known.
std::optional<Finding> finding_on_unused(const Profile& data, const std::vector<RooflineRow>& rows,
                                         const RooflineRow& total);

// Returns the finding on time in which devices ran nothing before their first launches and behind their last ones,
// where that is much: it says what the host did then, and promises nothing.
std::optional<Finding> finding_on_idle_outside(const Profile& data, const RooflineRow& total);

// The time of what torch.compile changes on a host.
struct TimeToCompile {
  std::int64_t outside_ns = 0;  // the host's code between ops
  std::int64_t usual_ns = 0;    // of that, without what interrupted this run alone
  std::int64_t fused_ns = 0;    // ops without products: it generates their code
  std::int64_t layout_ns = 0;   // wasted in convolutions of images in channels first: it changes their layout
  std::set<std::pair<std::string_view, std::string_view>> cases;  // the rules that hold for some of it, and the ops

  // Returns whether compiling changes what the case's time is spent for.
  bool add(const FindingCase& where);
};

// torch.compile changes a model as a whole, and so it has one gain. Leaves one of the findings that propose it, that of
// the largest gain, and states what compiling brings to the whole model there. On a device each keeps its own gain.
void state_what_compiling_brings(std::vector<Finding>& findings, const TimeToCompile& time, const Profile& data,
                                 const RooflineRow& total);

}  // namespace roofprof
