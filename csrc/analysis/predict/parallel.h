#pragma once
// One rank among several: the work that it shares with the others, and the time line of its ops and collectives.
// docs/prediction.md says what is assumed of ddp, fsdp and tp.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/predict/parameters.h"
#include "core/collective_kinds.h"
#include "core/profile.h"
#include "roofprof/prediction.h"

namespace roofprof {

// ---- The time line: ops run one after the other, and collectives do so at the same time.

struct Happening {
  enum class What : std::uint8_t {
    op,      // ops go on for that long
    begins,  // a collective is called: it starts when those before it have ended
    awaited  // ops go on when it has ended
  };
  What what = What::op;
  std::size_t index = 0;  // of the op or the collective
};

// Returns for each collective the part of its seconds in which ops waited. `ops` and `collectives`: how long each
// takes.
std::vector<double> exposed_seconds(const std::vector<Happening>& line, const std::vector<double>& ops,
                                    const std::vector<double>& collectives);

// ---- Ranks

// A rank calls it in each step.
struct PlannedCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;  // of a call, as nccl-tests defines its size
  DType dtype = DType::other;
  Owner owner;
  std::int64_t calls = 1;
};

struct RankPlan {
  std::vector<PlannedCollective> collectives;
  std::vector<Happening> line;    // the ops are those of the profile
  std::int64_t weight_bytes = 0;  // parameters and buffers that a rank keeps
};

// Divides the work that ranks share by their number, and returns what they send each other. `parameter_bytes`: of one
// parameter, as it is sent. `steps`: that were counted. Throws std::invalid_argument: one sentence that says what the
// model or the count lacks.
RankPlan plan_ranks(Profile& data, const PredictionOptions& options, double parameter_bytes, std::int64_t steps);

// The seconds of a planned collective, all its calls in a step, and the part in which ops wait, with its interval.
struct CollectiveTimes {
  double seconds = 0;
  double exposed = 0;
  double low = 0;
  double high = 0;
};

// `ops`: the seconds of each op of the profile in a step.
std::vector<CollectiveTimes> collective_times(const RankPlan& plan, const std::vector<double>& ops, std::int64_t ranks,
                                              const Ceilings& ceilings, const PredictionParameters& parameters);

// Adds the collectives to a profile whose ops have their predicted times, and a note about them. The time of their ops
// is the part that is exposed.
void add_collectives(Profile& data, const RankPlan& plan, const Ceilings& ceilings, const PredictionOptions& options,
                     const PredictionParameters& parameters, std::int64_t steps);

}  // namespace roofprof
