#include "core/check_indices.h"

#include <string>

namespace roofprof {

void check_events(const Profile& data) {
  const auto refuse = [](const std::string& why) { throw InvalidArgument("an event of the run " + why); };
  const auto check = [&](const auto& event) {
    if (event.owner.module < 0 || event.owner.module >= std::ssize(data.tree.modules))
      refuse("belongs to no module of the profile");
    if (event.owner.region < 0 || event.owner.region > std::ssize(data.tree.regions))
      refuse("ran in no region of the profile");
    if (event.name < -1 || event.name >= std::ssize(data.times->events.names))
      refuse("has a name that the profile has not");
    if (event.bucket < -1 || event.bucket >= std::ssize(data.counts.ops)) refuse("belongs to no op of the profile");
    if (event.end_ns < event.begin_ns) refuse("ends before it begins");
  };
  for (const auto& event : data.times->events.host) {
    check(event);
    const bool is_op = event.kind == EventKind::op || event.kind == EventKind::transparent;
    if (is_op && event.name < 0) refuse("is an op without a name");
    if (event.begin_ns < 0) refuse("begins before the run");
    if (event.thread < 0 || event.thread >= std::ssize(data.times->events.host)) refuse("is on no thread of the run");
    const bool has_row = data.tree.modules[index_of(event.owner.module)].type == kRegionType;
    if (event.kind == EventKind::region && event.owner.region == kNoRegion && !has_row)
      refuse("is a region without a name");
  }
  for (const auto& launch : data.times->events.device) {
    check(launch);
    if (launch.name < 0) refuse("is a launch without a name");
    if (launch.device < 0) refuse("is a launch on no device");
  }
}

void check_memory(const Profile& data) {
  const auto is_module = [&](ModuleId module) { return module >= 0 && module < std::ssize(data.tree.modules); };
  for (const auto& alive : data.counts.memory.alive) {
    if (!is_module(alive.module) || alive.storages < 0 || alive.bytes < 0) {
      throw InvalidArgument("memory at the peak belongs to no module of the profile, or is negative");
    }
  }
  const auto& timeline = data.counts.memory.timeline;
  for (const auto& point : timeline.points) {
    if (!is_module(point.module)) throw InvalidArgument("a point of memory's timeline belongs to no module");
  }
  if (timeline.ops_per_point < 0 || timeline.peak_point < -1 || timeline.peak_point >= std::ssize(timeline.points)) {
    throw InvalidArgument("memory's timeline has its peak outside of its points");
  }
}

void check_collectives(const Profile& data) {
  const auto is_in = [](std::int64_t index, const auto& list) { return index >= 0 && index < std::ssize(list); };
  for (const auto& bucket : data.comms->collectives) {
    if (!is_in(bucket.bucket, data.counts.ops) || !is_in(bucket.group, data.comms->groups)) {
      throw InvalidArgument("a collective belongs to no op or no group of the profile");
    }
    if (bucket.timed_calls < 0 || bucket.timed_calls > bucket.calls || bucket.waited_calls > bucket.timed_calls) {
      throw InvalidArgument("more calls of a collective are timed than were made");
    }
  }
  for (const auto& exposed : data.comms->exposed_in) {
    if (!is_in(exposed.collective, data.comms->collectives) || !is_in(exposed.owner.module, data.tree.modules) ||
        exposed.owner.region < 0 || exposed.owner.region > std::ssize(data.tree.regions) || exposed.exposed_ns < 0) {
      throw InvalidArgument("exposed communication belongs to no collective or module, or is negative");
    }
  }
  for (const auto& call : data.comms->calls) {
    if (!is_in(call.collective, data.comms->collectives) || call.end_ns < call.begin_ns) {
      throw InvalidArgument("a call of a collective belongs to none, or ends before it begins");
    }
  }
}

}  // namespace roofprof
