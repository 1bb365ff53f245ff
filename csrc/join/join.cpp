#include "join/join.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "core/idle.h"
#include "core/note_codes.h"
#include "core/phrases.h"
#include "join/attribution.h"
#include "join/collectives.h"
#include "join/compiled_kernels.h"
#include "join/compiled_regions.h"
#include "join/device_join.h"
#include "join/device_launches.h"
#include "join/events.h"
#include "join/host_profile.h"

namespace roofprof {
namespace {

void note_idle(const DeviceTimeline& timeline, std::vector<Note>& notes) {
  if (timeline.idle_basis == IdleBasis::observing) {
    add_note(notes, "idle-without-observing",
             "idle time of the device is without what observing adds to a launch, " +
                 fixed_text(static_cast<double>(timeline.observing_ns) * 1e-3, 1) +
                 " us as it was measured here on small ones; launches with more ops around them cost more");
  } else if (timeline.idle_basis == IdleBasis::seen) {
    add_note(notes, "idle-as-seen",
             "idle time of the device is as recorded, and what observing costs is in it: what that is could not be "
             "measured");
  }
}

// Drops the times of modules and ops on a device whose passes were not traced: the host's clock does not measure them.
// Times of whole runs stay, as a run ends when the device has finished.
Profile without_times_of_parts(Profile data) {
  for (auto& time : data.times.make().modules) time.self_ns.clear();
  for (auto& bucket : data.counts.ops) bucket.time_ns.reset();
  return data;
}

Profile with_traces(Profile data, const RunRecord& observed, const DeviceFacts& facts,
                    const std::vector<LaunchOwner>& owners) {
  add_notes(data.notes, facts.notes);
  if (observed.timed.empty()) return data;
  if (facts.simulated) {
    add_note(data.notes, "simulated-device",
             "simulated: the figures of " + data.run.device + " come from fakes of NVIDIA's libraries, no GPU ran",
             {data.run.device});
  }
  std::vector<const DeviceTrace*> traces;
  for (const auto& pass : observed.timed) traces.push_back(pass.device.get());
  if (std::ranges::find(traces, nullptr) != traces.end()) return without_times_of_parts(std::move(data));
  const auto& runs = data.run.runs;
  const bool bare = facts.by_host_clock && !runs.bare_ns.empty();
  data = with_device(std::move(data), traces, owners, facts.counters, bare ? 0 : facts.observing_ns.value_or(0));
  auto& device = data.device.make();
  device.compute_capability = facts.compute_capability;
  if (auto named = set_tensor_float(data.counts.ops, device.kernels); !named.empty()) {
    add_note(data.notes, "tensor-float",
             "products of fp32 ran in TF32 on tensor cores, as the names of their kernels say: they count as "
             "operations of TF32",
             std::move(named));
  }
  if (bare) device.timeline = at_bare_speed(device, runs.bare_ns);
  // Imported traces, and times by a simulated clock or of another time, get their notes elsewhere.
  if (!data.origin.imported && facts.by_host_clock) note_idle(device.timeline, data.notes);
  const auto& chosen = observed.timed[static_cast<std::size_t>(runs.chosen)];
  auto& events = data.times.make().events;
  events = with_launches(std::move(events), chosen, owners);
  if (data.comms) {
    data.comms = with_kernels_of_collectives(std::move(data.comms.make()), data.counts.ops,
                                             launches_of(*chosen.device, owners), chosen.collectives.of_kernels);
  }
  if (data.run.mode == Mode::block && facts.counters_wanted) {
    add_note(data.notes, "no-counters",
             "no counters: they need runs of their own, which a block does not get; run() reads them");
  }
  return data;
}

void note_others(const OtherCalls& others, std::vector<Note>& notes) {
  if (others.calls > 0) {
    std::string text = "while its own calls were observed, the model was called " +
                       (others.calls == 1 ? std::string("once") : std::to_string(others.calls) + " times") +
                       " on threads that what is profiled did not start: these calls are left out";
    if (others.inferred) {
      text +=
          " (inferred from the modules called there; if the model's forward starts these threads, let it begin "
          "with ROOFPROF_SCOPE(*this))";
    }
    add_note(notes, "other-calls", std::move(text));
  }
  if (others.unclear > 0) {
    add_note(notes, "calls-unclear",
             counted(others.unclear, "call") + " of modules on other threads " + (others.unclear == 1 ? "is" : "are") +
                 " not counted, because another profile of the model ran, which may have started them; let one end "
                 "before the next begins");
  }
  if (others.mixed) {
    add_note(notes, "calls-unclear",
             "modules ran on other threads while others called the model as well: what is counted there may be the "
             "work of these calls");
  } else if (others.helped) {
    add_note(
        notes, "calls-unclear",
        "modules were called on threads that what is profiled is not known to have started: these calls are counted as "
        "the model's own, and where other code made them, the figures are too high");
  }
}

Profile with_attribution(Profile data, const TorchNn& model, const std::set<ModuleId>& uncertain_places) {
  data.tree.modules = attributed(std::move(data.tree.modules), data.counts.ops, data.times->modules, model.sights);
  data.tree.modules = with_uncertain_places(std::move(data.tree.modules), uncertain_places, data.notes);
  if (!model.intercepting) {
    add_note(data.notes, "calls-not-seen",
             "calls of torch::nn modules are not seen, as libroofprof_nn does not come before libtorch in this "
             "program's link order: an op counts for the module whose parameters it takes, else for the innermost open "
             "scope; optimizers' steps are not separated");
  }
  return data;
}

// Empty: it is known.
std::string why_unknown(const MemorySeen& seen, bool holds_data, bool watched) {
  if (!seen.why_not.empty()) return seen.why_not;
  if (!holds_data) return seen.meta_unsized ? "the sizes of some tensors are symbolic, without a value" : "";
  // Such tensors allocate nothing here, so the measured memory is not what the call needs.
  if (seen.meta.peak_bytes > 0) {
    return "some tensors of the call hold no memory themselves: fake or meta ones, or subclasses such as DTensor";
  }
  if (watched && seen.watched_devices.size() > 1) return "its tensors are on several devices";
  return watched && seen.watched_unknown ? "the memory of some tensors is not known" : "";
}

// Adds the memory that the counting call allocated to its modules; where it is not known, a note says why.
// `holds_data`: false where tensors are on the meta device or fake, and their sizes stand for their memory.
Profile with_memory(Profile data, const Pass& counting, bool holds_data) {
  if (!counting.memory) return data;
  const auto& seen = *counting.memory;
  const bool watched = holds_data && (data.run.device != "cpu" || seen.watches_cpu);
  if (watched && seen.watched_devices.empty()) return data;  // what ran made nothing there, such as a recording
  if (const auto why_not = why_unknown(seen, holds_data, watched); !why_not.empty()) {
    add_note(data.notes, "no-memory", "no peak memory: " + why_not);
    return data;
  }
  if (watched) {
    add_note(data.notes, "memory-by-sizes",
             "peak and kept memory on " + seen.watched_devices.front() +
                 " are by the sizes of tensors between ops: what kernels allocate for themselves is not in it");
  }
  const auto& memory = watched ? seen.watched : holds_data ? seen.cpu : seen.meta;
  data.counts.memory = {memory.peak_bytes, memory.alive, memory.timeline};
  for (const auto& entry : memory.modules) {
    auto& module = data.tree.modules[index_of(entry.module)];
    module.peak_memory = entry.peak_bytes;
    module.kept_memory = entry.kept_bytes;
  }
  return data;
}

void note_sampled_traffic(const TrafficParts& parts, std::vector<Note>& notes) {
  const std::string where = parts.all == 0 ? "in the first ops, as the model was not called"
                                           : "in " + std::to_string(parts.logged) + " of " + std::to_string(parts.all) +
                                                 (parts.are_steps ? " steps" : " calls of the model") +
                                                 ": the first three, and about one in eight of the others";
  add_note(notes, "traffic-sampled",
           "reuse distances and the bytes that cross modules' boundaries are estimates: they were logged " + where);
}

}  // namespace

Profile join(RunRecord observed) {
  auto note_on_tracing = set_tracing_aside(observed);
  count_packages(observed);
  auto host = host_profile(modules_with_regions(std::move(observed.tree.modules), observed.regions), observed.counting,
                           observed.timed, observed.run.mode == Mode::block, observed.packages,
                           !observed.kernel_passes.empty());
  auto owners = launch_owners(observed.launches, host.ops);
  auto kernels = observed.on_device ? find_launches(observed, host, owners) : move_to_modules(observed, host);
  const Pass* chosen = host.chosen < 0 ? nullptr : &observed.timed[static_cast<std::size_t>(host.chosen)];
  Profile data;
  data.run = std::move(observed.run);
  std::ranges::transform(observed.timed, std::back_inserter(data.run.runs.total_ns), &Pass::wall_ns);
  data.run.runs.chosen = host.chosen;
  data.origin.imported = std::move(observed.imported);
  data.roofs = std::move(observed.roofs);
  data.tree.modules = std::move(host.modules);
  data.tree.regions = region_paths(std::move(observed.tree.regions), observed.counting, observed.timed);
  auto comms = collective_data(observed.counting, chosen, host.ops);
  if (comms != CollectiveData{}) data.comms = std::move(comms);
  Times times;
  times.modules = std::move(host.times);
  times.compiled_kernels = std::move(kernels.kernels);
  if (chosen != nullptr) times.events = host_events(*chosen, host.ops);
  if (times != Times{}) data.times = std::move(times);
  if (chosen != nullptr) add_own_kernels(observed.launches, observed.counting, *chosen, owners, host.ops);
  data.counts.ops.assign(std::make_move_iterator(host.ops.begin()), std::make_move_iterator(host.ops.end()));
  data.counts.crossings_known = observed.counting.crossings_known;
  data.counts.unobserved = std::move(host.unobserved);
  data.notes = std::move(observed.notes);
  if (observed.more_regions) {
    add_note(data.notes, "regions-refused",
             "more than " + std::to_string(observed.regions.size()) +
                 " distinct regions: further ones have no rows, their work is in the rows in which they were opened");
  }
  if (observed.first_call) {
    auto note = note_on_first_call(*observed.first_call, observed.counting, data.tree.modules);
    if (note) add_note(data.notes, std::move(*note));
  }
  data = with_memory(std::move(data), observed.counting, observed.holds_data);
  note_others(observed.others, data.notes);
  if (note_on_tracing) add_note(data.notes, std::move(*note_on_tracing));
  if (observed.counting.sampled) note_sampled_traffic(*observed.counting.sampled, data.notes);
  add_notes(data.notes, host.notes);
  add_notes(data.notes, kernels.notes);
  // The device's times replace the clock's. The notes about calls come later, because they need all of it.
  if (observed.on_device) data = with_traces(std::move(data), observed, *observed.on_device, owners);
  if (chosen != nullptr) {
    add_notes(data.notes, notes_on_collectives(*data.comms, chosen->collectives));
    add_notes(data.notes, notes_on_events(data.times->events, *chosen));
  }
  if (observed.torch_nn) {
    data = with_attribution(std::move(data), *observed.torch_nn, observed.counting.uncertain_places);
  }
  add_notes(data.notes, observed.notes_on_model);
  return data;
}

}  // namespace roofprof
