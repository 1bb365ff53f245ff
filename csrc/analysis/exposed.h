#pragma once
// Computes how much of a row's time is exposed communication, how much of that the network's roof explains, and what
// other work hid.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Returns the network's roof of a collective in a group of that backend and size; null where it was not measured.
const NetworkCeiling* network_roof(const Ceilings& ceilings, std::string_view collective, const ProcessGroup& group);

// Returns the time that its timed calls need by that roof; empty without one.
std::optional<double> network_bound_ns(const Profile& data, const CollectiveBucket& collective);

// A part of some time: no op computed while collectives were under way.
struct Exposed {
  std::int64_t time_ns = 0;
  std::int64_t needed_ns = 0;  // of it, by the network's roof
  bool roof_known = true;      // of all collectives in it
  std::string backend;         // of the collective with most of it

  Exposed& operator+=(const Exposed& other);
};

// The exposed communication in a module's own time, within one region.
struct ExposedPart {
  ModuleId module = kModel;
  RegionId region = kNoRegion;
  std::int64_t bucket = -1;  // of the collective's op, which another module may have called: index into ops
  Exposed exposed;
};

// Returns the exposed communication by module, region and op; empty where it is not known.
std::optional<std::vector<ExposedPart>> exposed_parts(const Profile& data);

// The time of a collective in which other work ran: it is part of no row's time.
struct HiddenTime {
  std::int64_t bucket = -1;  // of the collective's op: index into Counts::ops
  Owner owner;               // that op's
  std::int64_t ns = 0;
};

// Returns the hidden time of each collective; empty where that of a timed one is not known. On a device it is time of
// the collectives' kernels, and the rows' sum is the time of all kernels less this.
std::optional<std::vector<HiddenTime>> hidden_times(const Profile& data);

// Returns what is hidden of the times of a device's kernels: nothing where these are not known.
std::vector<HiddenTime> hidden_in_kernels(const Profile& data);

// Returns the exposed communication in each module's own time, by id; empty where it is not known.
std::optional<std::vector<Exposed>> exposed_by_module(const Profile& data);

}  // namespace roofprof
