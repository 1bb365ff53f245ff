#include "run/finish_report.h"

#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "join/join.h"
#include "roofs/cpu/neighbours.h"
#include "values/phrases.h"

namespace roofprof::run {
namespace {

// Where other work is expected, as beside a test suite, nobody needs to be told of it.
bool on_shared_machine() {
  const char* set = std::getenv("ROOFPROF_SHARED_MACHINE");
  return set != nullptr && std::string_view(set) == "1";
}

void note_neighbours(double share, const std::string& scope, std::vector<Note>& notes) {
  if (share <= Neighbours::kBusy || on_shared_machine()) return;
  add_note(notes, "machine-busy",
           "other processes used " + percent(share) + " of the processors while the " +
               (scope == "block" ? "block ran" : "calls were timed") +
               ": times may be too long; measure again when the machine is quiet");
}

}  // namespace

Report finish_report(ObservedRun& run, Observed observed, const MeasuredCeilings& roofs,
                     std::optional<std::int64_t> depth) {
  const auto& setting = run.setting();
  auto& result = run.result();
  observed.scope = setting.scope;
  observed.device = setting.device;
  observed.partial = result.partial;
  observed.counting = std::move(*result.counting);
  observed.first_call = std::move(result.first_call);
  observed.timed = std::move(result.timed);
  observed.bare_ns = result.bare_ns;
  observed.warmup = result.warmup;
  observed.environment = environment_of(setting.device);
  observed.ceilings = roofs.ceilings;
  add_notes(observed.notes, result.notes);
  if (setting.device == "cpu") note_neighbours(result.others_share.value_or(0), setting.scope, observed.notes);
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
  observed.more_regions = session.regions().refused();
  observed.launches = session.launches().keys();
  observed.on_device = run.device().facts(observed.timed);
  return Report(std::make_shared<const ProfileData>(join(std::move(observed))), depth);
}

}  // namespace roofprof::run
