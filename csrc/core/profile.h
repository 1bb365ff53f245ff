#pragma once
// Holds what was observed, before any figure is derived from it: the join makes it, and a report's JSON keeps it.

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/collective_data.h"
#include "core/counts.h"
#include "core/device_work.h"
#include "core/note_codes.h"
#include "core/profile_kind.h"
#include "core/run_info.h"
#include "core/times.h"
#include "core/tree.h"
#include "roofprof/ceilings.h"

namespace roofprof {

class Report;

// The version of a report's JSON. It is raised when a reader of the older form would miss a key or misread one.
inline constexpr std::int64_t kReportSchemaVersion = 6;

// A part that a profile may lack. Reading a missing part gives an empty one; make() adds it, to be written to.
template <class Part>
class Maybe {
 public:
  Maybe() = default;
  Maybe(Part part) : part_(std::move(part)) {}  // NOLINT(google-explicit-constructor): as std::optional

  bool has_value() const { return part_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Part& operator*() const {
    static const Part kNothing{};
    return part_ ? *part_ : kNothing;
  }
  const Part* operator->() const { return &**this; }
  Part& make() { return part_ ? *part_ : part_.emplace(); }
  void reset() { part_.reset(); }

  // One that is empty reads as one that is missing.
  bool operator==(const Maybe& other) const { return **this == *other; }

 private:
  std::optional<Part> part_;
};

struct Profile {
  RunInfo run;
  Tree tree;
  Counts counts;
  Maybe<Times> times;        // missing: neither calls of modules were seen nor times
  Maybe<DeviceWork> device;  // where it is there, times are those of its kernels
  Maybe<CollectiveData> comms;
  Origin origin;
  Ceilings roofs;
  // Notes of the observer; the join adds those that follow from the data itself.
  std::vector<Note> notes;

  bool operator==(const Profile& other) const {
    const auto parts = [](const Profile& profile) {
      const auto& [run, tree, counts, times, device, comms, origin, roofs, notes] = profile;
      // A device that did nothing was timed all the same.
      return std::tuple(std::tie(run, tree, counts, times, device, comms, origin, roofs, notes), device.has_value());
    };
    return parts(*this) == parts(other);
  }
};

// A report of a profile, and the profile that a report was made of.
[[nodiscard]] Report make_report(std::shared_ptr<const Profile> data, std::optional<std::int64_t> depth = {});
[[nodiscard]] const Profile& data_of(const Report& report);

}  // namespace roofprof
