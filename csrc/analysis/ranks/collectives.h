#pragma once
// Collectives with their figures.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/ranks/merged_sums.h"
#include "core/interval.h"
#include "core/profile.h"
#include "roofprof/collectives.h"

namespace roofprof {

// Returns the collectives, the longest first, then those with most bytes.
std::vector<Collective> collective_rows(const Profile& data);

// Adds to the rows, and to the total, how long the collectives that they caused took, and how much of the rows' own
// time passed with communication exposed.
void add_communication(const Profile& data, std::vector<RooflineRow>& rows, RooflineRow& total);

// ---- The collectives of all ranks: sums, and how long each rank waited for the last one to call.

// The time that must be added to a rank's clock to get the first rank's.
struct ClockOffset {
  std::int64_t offset_ns = 0;
  std::int64_t error_ns = 0;  // at most so far off

  bool operator==(const ClockOffset&) const = default;
};

// The clock that timed a rank's calls.
struct RankClock {
  std::optional<ClockOffset> offset;  // empty: not known
  bool aligned_by_ends = false;       // it is to be found by collectives that the rank shares with others
  bool of_first_host = false;         // if that does not succeed, it is the first rank's
};

// A clock that was found by the ends of collectives.
struct AlignedClock {
  std::int64_t rank = 0;         // which add()
  std::int64_t collectives = 0;  // that it was found by; 0: none, or they do not fit
  bool of_first_host = false;    // it was not found, and is taken to be that of the first rank
  ClockOffset clock;             // the error: nine of ten ends agree better
};

class MergedCollectives {
 public:
  // `buckets`: by the index of each of its ops the merged one. `host`: empty where it is not known.
  void add(const Profile& data, const MergedIndices& indices, const std::vector<std::int64_t>& buckets,
           const std::string& host, const RankClock& clock);
  // Finds the clocks that are to be found by ends. A collective ends on all ranks when the last one has come, so the
  // difference of clocks is the median difference of ends. To be called once, before finish().
  std::vector<AlignedClock> align();
  // Returns those of all ranks. `waiting` gets how long each rank waited in any collective, in the order of add();
  // empty where none of its calls was found on all ranks.
  CollectiveData finish(std::vector<std::optional<std::int64_t>>& waiting);

  // Returns the largest error among the ranks' clocks.
  std::int64_t clock_error_ns() const { return error_ns_; }

 private:
  // The same call on all ranks of a group: its group, its operator, its number there, and its size where that is the
  // same on all ranks.
  struct Instance {
    std::int64_t group = 0;
    std::int64_t op = 0;
    std::int64_t sequence = 0;
    std::int64_t bytes = 0;
    auto operator<=>(const Instance&) const = default;
  };
  struct Call {
    Instance instance;
    std::int64_t collective = 0;
    std::int64_t rank = 0;  // which add()
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };

  struct Differences {
    std::vector<std::int64_t> ns;       // of ends, from a rank whose clock is known
    std::vector<std::int64_t> lengths;  // of the calls
    std::int64_t error_ns = 0;          // of the clock that they are from
  };
  // Returns, by rank, how far ranks whose clocks are not known yet are from those in `known`.
  std::map<std::int64_t, Differences> differences(const std::map<std::int64_t, ClockOffset>& known) const;
  const std::string& name_of_op(std::int64_t op) const;
  std::int64_t group_of(const ProcessGroup& group);
  std::int64_t collective_of_bucket(std::int64_t bucket, std::int64_t group);
  void split(const Call* first, const Call* last, CollectiveData& data, std::vector<Intervals>& waits) const;

  std::vector<ProcessGroup> groups_;
  std::vector<std::set<std::string>> hosts_;  // of each of them
  std::map<std::string, std::int64_t> group_places_;
  std::vector<CollectiveBucket> collectives_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> places_;  // by merged op and group
  std::map<std::string, std::int64_t, std::less<>> ops_;
  std::vector<Call> calls_;
  std::map<std::int64_t, bool> floating_;  // ranks whose clocks are to be found, and whether they ran on the first host
  std::int64_t ranks_ = 0;
  std::int64_t error_ns_ = 0;
  KnownSum time_, exposed_;
  std::map<std::pair<std::int64_t, Owner>, std::int64_t> exposed_in_;
  bool places_known_ = true;  // on all ranks
};

}  // namespace roofprof
