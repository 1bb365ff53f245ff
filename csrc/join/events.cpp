#include "join/events.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "join/device_launches.h"

namespace roofprof {
namespace {

// Each text once.
class EventNames {
 public:
  explicit EventNames(std::vector<std::string>& names) : names_(names) {
    for (std::size_t i = 0; i < names.size(); ++i) known_.emplace(names[i], static_cast<std::int64_t>(i));
  }
  std::int64_t index_of(const std::string& name) {
    const auto [known, fresh] = known_.try_emplace(name, std::ssize(names_));
    if (fresh) names_.push_back(name);
    return known->second;
  }

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::int64_t> known_;
};

bool has_known_start(const DeviceTrace& trace) { return trace.start_ns != 0; }

}  // namespace

Events host_events(const Pass& chosen, const std::vector<Pass::Op>& counted) {
  Events events;
  if (!chosen.events) return events;
  events.kept = true;
  events.left_out = chosen.events->left_out;
  events.host = chosen.events->host;
  std::ranges::sort(events.host, {},
                    [](const Event& event) { return std::tuple(event.begin_ns, -event.end_ns, event.id); });

  const auto buckets = indices_by_key(counted);
  EventNames names(events.names);
  std::vector<std::pair<std::int64_t, std::int64_t>> ops;  // name and bucket of each op of the pass
  for (const auto& op : chosen.ops) {
    const auto bucket = buckets.find(op.key());
    ops.emplace_back(names.index_of(op.op), bucket == buckets.end() ? -1 : bucket->second);
  }
  std::unordered_map<std::int64_t, std::int64_t> threads;
  for (auto& event : events.host) {
    event.thread = threads.try_emplace(event.thread, std::ssize(threads)).first->second;
    event.begin_ns = std::max<std::int64_t>(event.begin_ns, 0);
    event.end_ns = std::max(event.end_ns, event.begin_ns);
    if (event.kind == EventKind::transparent) {
      event.name = names.index_of(chosen.events->names.at(static_cast<std::size_t>(event.name)));
    }
    if (event.bucket < 0) continue;
    std::tie(event.name, event.bucket) = ops.at(static_cast<std::size_t>(event.bucket));
  }
  return events;
}

Events with_launches(Events events, const Pass& chosen, const std::vector<LaunchOwner>& owners) {
  if (!events.kept || !chosen.device || !has_known_start(*chosen.device)) return events;
  const auto& trace = *chosen.device;
  const auto to_host = chosen.trace_start_ns - trace.start_ns;
  std::unordered_map<std::int64_t, ModuleId> modules_of_ops;  // by the event's id
  for (const auto& event : events.host) {
    const bool is_op = event.kind == EventKind::op || event.kind == EventKind::transparent;
    if (is_op) modules_of_ops.emplace(event.id, event.owner.module);
  }
  EventNames names(events.names);
  for (const auto& [record, owner, attributed] : launches_of(trace, owners).in_order) {
    LaunchEvent launch;
    launch.kind = record->kind;
    launch.name = names.index_of(name_of_launch(*record, trace.names));
    launch.device = record->device;
    launch.stream = record->stream;
    launch.owner = owner->owner;
    launch.bucket = owner->bucket;
    launch.begin_ns = record->start_ns + to_host;
    launch.end_ns = record->end_ns + to_host;
    // The op that captured a graph's kernels may have ended long before they run. Ids of replayed data may be of
    // another run.
    const auto op = modules_of_ops.find(event_of_launch(record->launch));
    // Kernels of compiled code count for other modules than the op that launched them, in this run.
    const bool is_its_own =
        op != modules_of_ops.end() && !owner->op.empty() && (op->second == owner->owner.module || owner->compiled > 0);
    if (is_its_own && record->graph_node == 0) launch.event = op->first;
    events.device.push_back(launch);
  }
  std::ranges::stable_sort(events.device, {},
                           [](const LaunchEvent& launch) { return std::pair(launch.begin_ns, -launch.end_ns); });
  if (std::ssize(events.device) > kEventsKept) {
    events.left_out += std::ssize(events.device) - kEventsKept;
    events.device.resize(static_cast<std::size_t>(kEventsKept));
  }
  return events;
}

std::vector<Note> notes_on_events(const Events& events, const Pass& chosen) {
  std::vector<Note> notes;
  if (events.left_out > 0) {
    add_note(notes, "events-left-out",
             "traces have the beginning of the run alone: there was no room for " +
                 counted(events.left_out, "further event") + "; figures have all of them");
  }
  if (events.kept && chosen.device && !has_known_start(*chosen.device)) {
    add_note(notes, "events-left-out",
             "traces have no kernels: when the device's recording began is not known, so its clock cannot be held "
             "against the host's");
  }
  return notes;
}

}  // namespace roofprof
