#include "run/finish_report.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/phrases.h"
#include "join/join.h"
#include "machine/cpu/background_load.h"

namespace roofprof::run {

Report finish_report(ObservedRun& run, RunRecord observed, const MeasuredCeilings& roofs,
                     std::optional<std::int64_t> depth) {
  const auto& setting = run.setting();
  auto& result = run.result();
  observed.mode = setting.scope;
  observed.device = setting.device;
  observed.holds_data = setting.holds_data;
  observed.partial = result.partial;
  observed.counting = std::move(*result.counting);
  observed.first_call = std::move(result.first_call);
  observed.timed = std::move(result.timed);
  auto& runs = observed.runs;
  runs.bare_ns = std::move(result.bare_ns);
  runs.warmup = result.warmup;
  runs.steps = result.steps.count();
  if (setting.timed()) runs.step_ns = result.steps.times_ns();
  if (runs.steps > 0) {
    const auto& block = observed.counting;
    runs.after_steps = {std::max<std::int64_t>(block.wall_ns - result.steps.total_ns(), 0), block.after_last_step};
  }
  observed.environment = environment_of(setting.device);
  observed.ceilings = roofs.ceilings;
  add_notes(observed.notes, result.notes);
  if (setting.device == "cpu") {
    const auto* meanwhile = setting.scope == "block" ? "the block ran" : "the calls were timed";
    if (auto busy = BackgroundLoad::note(result.others_share, meanwhile)) add_note(observed.notes, std::move(*busy));
  }
  if (!setting.untimed.empty() && setting.scope != "count") add_note(observed.notes, "not-timed", setting.untimed);
  if (const double share = roofs.ceilings.busy_share; share > 0) {
    add_note(observed.notes, "roofs-busy",
             "other programs used " + percent(share) +
                 " of the processors while the roofs were measured: they may be too low, and %roof too high; they are "
                 "not kept; measure them on a quiet machine: roofprof ceilings --again");
  }
  for (const auto& note : roofs.notes) add_note(observed.notes, "roofs-doubtful", "roofs: " + note);

  const auto& session = *run.session();
  observed.regions = session.regions().all();
  observed.region_paths = session.regions().all_paths();
  observed.more_regions = session.regions().refused();
  observed.launches = session.launches().keys();
  observed.others = session.others().all();
  observed.on_device = run.device().facts(observed.timed);
  return make_report(std::make_shared<const ProfileData>(join(std::move(observed))), depth);
}

}  // namespace roofprof::run
