#include "kineto/importer/import_ncu.h"

#include <memory>
#include <utility>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "join/join.h"
#include "kineto/importer/import_trace.h"
#include "ncu/match.h"
#include "ncu/record.h"

namespace roofprof {

namespace {

void note_losses(const ncu::Output& output, std::vector<Note>& notes) {
  if (output.damaged_rows > 0) {
    add_note(notes, "ncu-lacks",
             counted(output.damaged_rows, "row") + " of ncu's table with too few or too many fields " +
                 (output.damaged_rows == 1 ? "was" : "were") + " left out");
  }
  if (output.unread_values > 0) {
    add_note(notes, "ncu-lacks",
             counted(output.unread_values, "value") + " of ncu's could not be read, such as " + output.unread_value);
  }
}

}  // namespace

void add_counters(RunRecord& observed, const ncu::Output& output) {
  const auto& timed = observed.timed.front();
  if (timed.device == nullptr) {
    throw ncu::NcuError("it has no kernels that the counters of ncu could be of");
  }
  auto& device = *observed.on_device;
  device.counters =
      ncu::counters_for(output, *timed.device, observed.device, device.compute_capability, observed.runs.steps);
  if (device.compute_capability.empty()) device.compute_capability = output.compute_capability;
  note_losses(output, observed.notes);
}

Report import_ncu(const ncu::Output& output, const std::optional<Ceilings>& roofs) {
  auto observed = ncu::record_of(output);
  note_losses(output, observed.notes);
  give_roofs(observed, roofs, "ncu's table");
  auto data = join(std::move(observed));
  data.device_times.clear();  // how long the device was busy between them is not known
  data.busy_ns = data.idle_before_ns = data.idle_after_ns = 0;
  data.idle_basis = IdleBasis::unsettled;
  return make_report(std::make_shared<const ProfileData>(std::move(data)), {});
}

}  // namespace roofprof
