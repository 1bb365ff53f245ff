#include "join/launch_order.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "join/device_launches.h"

namespace roofprof {

namespace {

using Records = std::vector<const KernelRecord*>;
using Stream = std::pair<std::uint32_t, std::uint32_t>;  // of a device

Stream stream_of(const KernelRecord& record) { return {record.device, record.stream}; }

std::map<Stream, Records> by_stream(const Records& records) {
  std::map<Stream, Records> streams;
  for (const auto* record : records) streams[stream_of(*record)].push_back(record);
  return streams;
}

// Two calls, with their launches in order.
class Calls {
 public:
  Calls(const DeviceTrace& observed, const DeviceTrace& alone)
      : observed_(observed),
        alone_(alone),
        of_observed_(in_launch_order(observed)),
        of_alone_(in_launch_order(alone)),
        ids_(alone.records.size(), kNoLaunch) {}

  // Return true if the launches of the two are the same in that way; then ids() has their owners.
  bool fit_on_the_same_streams() {
    return fit(of_observed_, of_alone_,
               [](const KernelRecord& was, const KernelRecord& is) { return stream_of(was) == stream_of(is); });
  }
  bool fit_by_stream() {
    const auto were = by_stream(of_observed_);
    const auto are = by_stream(of_alone_);
    return std::ranges::equal(were, are, [&](const auto& was, const auto& is) {
      return was.first == is.first && fit(was.second, is.second, [](const auto&, const auto&) { return true; });
    });
  }
  bool fit_on_other_streams() {
    std::map<Stream, Stream> now;
    std::set<Stream> taken;
    return fit(of_observed_, of_alone_, [&](const KernelRecord& was, const KernelRecord& is) {
      const auto [known, is_new] = now.try_emplace(stream_of(was), stream_of(is));
      return was.device == is.device && (is_new ? taken.insert(stream_of(is)).second : known->second == stream_of(is));
    });
  }

  // Returns the launch ids, indexed by record.
  const std::vector<LaunchId>& ids() const { return ids_; }

 private:
  template <class OnStreams>
  bool fit(const Records& were, const Records& are, OnStreams on_streams) {
    if (were.size() != are.size()) return false;
    for (std::size_t i = 0; i < were.size(); ++i) {
      if (!same_launch(*were[i], observed_, *are[i], alone_) || !on_streams(*were[i], *are[i])) return false;
      ids_[static_cast<std::size_t>(are[i] - alone_.records.data())] = were[i]->launch;
    }
    return true;
  }

  const DeviceTrace& observed_;
  const DeviceTrace& alone_;
  Records of_observed_, of_alone_;
  std::vector<LaunchId> ids_;
};

// Returns whether the note says whose launches are.
bool is_of_owners(const Note& note) {
  return note.code == "graph-launches" || note.code == "launches-misplaced" || note.code == "cupti-shared";
}

}  // namespace

std::optional<DeviceTrace> with_owners_of(const DeviceTrace& observed, DeviceTrace alone) {
  Calls calls(observed, alone);
  if (!calls.fit_on_the_same_streams() && !calls.fit_by_stream() && !calls.fit_on_other_streams()) return std::nullopt;
  for (std::size_t i = 0; i < alone.records.size(); ++i) alone.records[i].launch = calls.ids()[i];
  std::erase_if(alone.notes, is_of_owners);
  std::ranges::copy_if(observed.notes, std::back_inserter(alone.notes), is_of_owners);
  return alone;
}

}  // namespace roofprof
