#pragma once
// The roofline model as pure arithmetic: what the roofs say of one bucket, of a sum of buckets, and of a sum of buckets
// with a time. Seconds here are exact doubles; nanoseconds are what is stored and summed.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analysis/exposed.h"
#include "core/deviation.h"
#include "core/memory_time.h"
#include "core/profile.h"

namespace roofprof {

// Returns the seconds in nanoseconds, at most kSaturated.
std::int64_t rounded_ns(double seconds);

inline constexpr double kRoofBounds = 3;  // percent of the time: where the roofs explain less, none of them bounds

// The times that some work needs by the roofs. Additive over buckets.
struct RoofShares {
  // Every roof that the work needs is there; without one the lower bound of the whole sum is unknown.
  bool known = true;
  // Each bucket is rounded to nanoseconds once, so that rows, groups and totals add up exactly. The lower bound is the
  // larger of the two in each bucket.
  std::int64_t compute_time_ns = 0;
  std::int64_t memory_time_ns = 0;
  std::int64_t lower_bound_time_ns = 0;
  // The lower bound by the bytes that were counted (counted_seconds), in place of those that must move. Not known where
  // some of the work was not counted.
  std::int64_t counted_bound_ns = 0;
  bool all_counted = true;
  bool any_counted = false;
  // Seconds at each roof, whether or not it is the one that bounds: which dtype and level dominate the work.
  std::array<double, kDTypeCount> at_dtype{};
  std::map<std::string, LevelShare> at_level;
  // The lower bound in seconds, by the resource that bounds each bucket.
  std::array<double, kDTypeCount> bound_by_dtype{};
  std::map<std::string, double> bound_by_level;

  RoofShares& operator+=(const RoofShares& other);
};

// Returns max(sum over dtypes of operations / peak, sum over memory_parts() of bytes / bandwidth). Not known where
// floating-point work, or a contraction in any type, has no roof. Integer work without multiply-accumulates (counters,
// indices, comparisons) needs only its bytes' roof: it is never bound by arithmetic, and peaks for such types are not
// measured. `needs_roof` tells the two apart. Collectives need nothing by these: the network's roof holds them, and
// only while no op computes. Nor do ops that launched nothing on the device whose roofs these are.
RoofShares roof_shares(const OpBucket& bucket, const Ceilings& ceilings);
bool needs_roof(const Work& work, DType dtype);

// Returns the resource that takes the largest part of the lower bound: first compute or memory, whichever is larger,
// then the dtype or level within it. Memory where both are equal.
Bound largest_share(const RoofShares& shares);

// Everything that is summed over buckets.
struct Tally {
  Work work;
  Work off_device;  // of it, what took none of the device's time: ops that launched nothing there
  RoofShares roof;
  std::optional<std::int64_t> op_time_ns;    // of the buckets that were timed; empty: none was
  std::optional<std::int64_t> predicted_ns;  // of the buckets with predicted times; empty: none has
  Deviation below_ns;                        // how much less they may take
  Deviation above_ns;                        // and how much more
  std::int64_t floor_ns = 0;
  Exposed exposed;  // communication in the time; its bytes have no other roof
  bool communicates = false;
  bool incomplete = false;  // holds an uncosted bucket, or one of which only a lower limit is known
  std::int64_t buckets = 0;

  void add(const OpBucket& bucket, const Ceilings& ceilings);
  Tally& operator+=(const Tally& other);
};

// The times that devices were busy, and idle until they were given more.
struct DeviceWait {
  std::int64_t busy_ns = 0;
  std::int64_t between_ns = 0;       // two launches
  std::int64_t ends_ns = 0;          // before the first one and after the last: of a total
  std::int64_t by_observing_ns = 0;  // how much of what is between launches may be the observer's
};

struct Timing {
  std::optional<std::int64_t> time_ns;
  std::optional<double> spread;
  bool of_device = false;                 // the time is that of launches on a device; else of code on the host
  std::optional<DeviceWait> device = {};  // where it is known for just this code
  std::optional<std::int64_t> host_ns = {};
};

// Returns all figures that follow from a tally and its time. A row's attainable rate is min(peak, intensity x
// bandwidth) with the dtype and the level at which its work would spend most time.
Figures derive_figures(const Tally& tally, const Timing& timing, const Ceilings& ceilings, double common_error = 1);

}  // namespace roofprof
