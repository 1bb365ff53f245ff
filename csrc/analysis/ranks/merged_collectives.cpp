#include "analysis/ranks/merged_collectives.h"

#include <algorithm>

#include "analysis/communication/exposed.h"
#include "core/collective_kinds.h"

namespace roofprof {

namespace {

// Whether no rank's call ends before all have called.
bool synchronizes(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::barrier:
      return true;
    default:
      return false;
  }
}

bool is_between_two(CollectiveKind kind) { return kind == CollectiveKind::send || kind == CollectiveKind::recv; }

}  // namespace

std::int64_t MergedCollectives::group_of(const ProcessGroup& group) {
  const auto [place, fresh] = group_places_.try_emplace(group.name, std::ssize(groups_));
  if (fresh) {
    groups_.push_back(group);
    hosts_.emplace_back();
  }
  return place->second;
}

std::int64_t MergedCollectives::collective_of_bucket(std::int64_t bucket, std::int64_t group) {
  const auto [place, fresh] = places_.try_emplace({bucket, group}, std::ssize(collectives_));
  if (fresh) collectives_.push_back({.bucket = bucket, .group = group, .exposed_known = true});
  return place->second;
}

void MergedCollectives::add(const ProfileData& data, const MergedIndices& indices,
                            const std::vector<std::int64_t>& buckets, const std::string& host,
                            const std::optional<ClockOffset>& clock) {
  std::vector<std::int64_t> places;
  for (const auto& own : data.collectives.collectives) {
    const auto group = group_of(data.collectives.groups[static_cast<std::size_t>(own.group)]);
    hosts_[static_cast<std::size_t>(group)].insert(host);
    const auto place = collective_of_bucket(buckets[static_cast<std::size_t>(own.bucket)], group);
    places.push_back(place);
    auto& sum = collectives_[static_cast<std::size_t>(place)];
    sum.calls = saturating_add(sum.calls, own.calls);
    sum.timed_calls = saturating_add(sum.timed_calls, own.timed_calls);
    sum.time_ns = saturating_add(sum.time_ns, own.time_ns);
    sum.exposed_ns = saturating_add(sum.exposed_ns, own.exposed_ns);
    sum.exposed_known = sum.exposed_known && own.exposed_known;
  }
  places_known_ = places_known_ && exposed_by_module(data).has_value();
  for (const auto& part : data.collectives.exposed_in) {
    auto& sum_ns = exposed_in_[{places[static_cast<std::size_t>(part.collective)], indices.owner(part.owner)}];
    sum_ns = saturating_add(sum_ns, part.exposed_ns);
  }
  time_.add(data.collectives.time_ns);
  exposed_.add(data.collectives.exposed_ns);
  const std::int64_t rank = ranks_++;
  if (!clock) return;
  error_ns_ = std::max(error_ns_, clock->error_ns);
  for (const auto& call : data.collectives.calls) {
    const auto& own = data.collectives.collectives[static_cast<std::size_t>(call.collective)];
    const auto& name = data.ops[static_cast<std::size_t>(own.bucket)].op;
    const auto kind = collective_of(name);
    if (!kind || is_between_two(*kind) || call.sequence < 0) continue;
    const auto op = ops_.try_emplace(name, std::ssize(ops_)).first->second;
    const auto place = places[static_cast<std::size_t>(call.collective)];
    const auto group = collectives_[static_cast<std::size_t>(place)].group;
    calls_.push_back(
        {{group, op, call.sequence}, place, rank, call.begin_ns + clock->offset_ns, call.end_ns + clock->offset_ns});
  }
}

void MergedCollectives::split(const Call* first, const Call* last, CollectiveData& data,
                              std::vector<Intervals>& waits) const {
  const auto& group = groups_[static_cast<std::size_t>(first->instance.group)];
  if (last - first != group.ranks) return;
  const auto all_called =
      std::max_element(first, last, [](const Call& a, const Call& b) { return a.begin_ns < b.begin_ns; })->begin_ns;
  const auto first_end =
      std::min_element(first, last, [](const Call& a, const Call& b) { return a.end_ns < b.end_ns; })->end_ns;
  const auto name = std::ranges::find(ops_, first->instance.op, [](const auto& op) { return op.second; })->first;
  // Else these are not the same call.
  if (synchronizes(*collective_of(name)) && all_called > first_end + 2 * error_ns_) return;
  for (const auto* call = first; call != last; ++call) {
    auto& collective = data.collectives[static_cast<std::size_t>(call->collective)];
    const auto wait = std::clamp<std::int64_t>(all_called, call->begin_ns, call->end_ns) - call->begin_ns;
    ++collective.waited_calls;
    collective.wait_ns += wait;
    collective.transfer_ns += call->end_ns - call->begin_ns - wait;
    waits[static_cast<std::size_t>(call->rank)].push_back({call->begin_ns, call->begin_ns + wait});
  }
}

void MergedCollectives::write(ProfileData& data, std::vector<std::optional<std::int64_t>>& waiting) {
  waiting.assign(static_cast<std::size_t>(ranks_), std::nullopt);
  data.collectives.groups = groups_;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].contains("")) data.collectives.groups[i].hosts = std::ssize(hosts_[i]);
  }
  data.collectives.collectives = collectives_;
  for (const auto& [place, exposed_ns] : exposed_in_) {
    if (places_known_) data.collectives.exposed_in.push_back({place.first, place.second, exposed_ns});
  }
  data.collectives.time_ns = time_.value();
  data.collectives.exposed_ns = exposed_.value();
  std::vector<Intervals> waits(static_cast<std::size_t>(ranks_));
  std::ranges::sort(calls_, {}, &Call::instance);
  for (auto first = calls_.begin(); first != calls_.end();) {
    const auto last =
        std::ranges::find_if(first, calls_.end(), [&](const Call& call) { return call.instance != first->instance; });
    split(&*first, &*first + (last - first), data.collectives, waits);
    first = last;
  }
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i].empty()) continue;
    unite(waits[i]);
    waiting[i] = length_of(waits[i]);
  }
}

}  // namespace roofprof
