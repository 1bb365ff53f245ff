#include "analysis/ranks/collectives.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <tuple>

#include "analysis/exposed.h"
#include "analysis/rows.h"
#include "core/collective_kinds.h"
#include "core/median.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

std::int64_t times(double factor, std::int64_t bytes) { return std::llround(factor * static_cast<double>(bytes)); }

std::optional<std::int64_t> bytes_by(Algorithm algorithm, CollectiveKind kind, const Collective& row) {
  const auto factor = wire_factor(kind, algorithm, row.ranks);
  return factor ? std::optional(times(*factor, *row.bytes)) : std::nullopt;
}

// `factor`: empty where the number of ranks, or what each sends, is not known.
void add_times(const CollectiveBucket& bucket, double share, std::optional<double> factor, Collective& row) {
  row.time_ns = bucket.time_ns;
  if (bucket.exposed_known) row.exposed_ns = bucket.exposed_ns;
  if (bucket.waited_calls == bucket.timed_calls) {
    row.wait_ns = bucket.wait_ns;
    row.transfer_ns = bucket.transfer_ns;
  }
  const auto seconds = static_cast<double>(row.transfer_ns.value_or(bucket.time_ns)) * 1e-9;
  if (seconds <= 0 || row.bytes.value_or(0) <= 0) return;
  row.algorithm_bandwidth = share * static_cast<double>(*row.bytes) / seconds;
  if (factor) row.bus_bandwidth = *row.algorithm_bandwidth * *factor;
}

// Returns whether the size follows from one rank's part by the number of ranks.
bool is_of_parts(CollectiveKind kind) { return kind == CollectiveKind::gather || kind == CollectiveKind::scatter; }

void add_bound(double bound_ns, Collective& row) {
  row.lower_bound_ns = std::llround(bound_ns);
  row.bound = {BoundKind::network, row.backend};
  if (!row.time_ns || *row.time_ns <= 0) return;
  row.percent_of_roof = 100 * bound_ns / static_cast<double>(*row.time_ns);
  row.wasted_ns = std::max<std::int64_t>(*row.time_ns - *row.lower_bound_ns, 0);
}

}  // namespace

std::vector<Collective> collective_rows(const Profile& data) {
  std::vector<Collective> rows;
  for (const auto& bucket : data.comms->collectives) {
    const auto& op = data.counts.ops[static_cast<std::size_t>(bucket.bucket)];
    const auto& group = data.comms->groups[static_cast<std::size_t>(bucket.group)];
    const auto kind = collective_of(op.op);
    if (!kind || op.calls <= 0 || bucket.calls <= 0) continue;
    Collective row;
    row.name = name_of(*kind);
    row.op = op.op;
    row.group = group.name;
    row.backend = group.backend;
    row.ranks = group.ranks;
    row.hosts = group.hosts;
    row.module = data.tree.modules[index_of(op.owner.module)].path;
    row.phase = op.owner.phase;
    row.dtype = op.dtype;
    row.shapes = shapes_text(op.shapes);
    row.calls = bucket.calls;
    row.timed_calls = bucket.timed_calls;
    // An op may be called in several groups.
    if (op.costed && (group.ranks > 0 || !is_of_parts(*kind))) {
      const auto all = message_bytes(*kind, op.work, group.ranks);
      row.bytes = times(static_cast<double>(bucket.calls) / static_cast<double>(op.calls), all);
    }
    std::optional<double> factor;
    if (group.ranks > 0 && !bucket.uneven) factor = bus_factor(*kind, group.ranks);
    if (factor && row.bytes) {
      row.wire_bytes = times(*factor, *row.bytes);
      row.ring_bytes = bytes_by(Algorithm::ring, *kind, row);
      row.tree_bytes = bytes_by(Algorithm::tree, *kind, row);
      row.direct_bytes = bytes_by(Algorithm::direct, *kind, row);
    }
    if (!bucket.algorithm.empty()) row.algorithm = bucket.algorithm;
    const double share = static_cast<double>(bucket.timed_calls) / static_cast<double>(bucket.calls);
    if (bucket.timed_calls > 0) add_times(bucket, share, factor, row);
    if (const auto bound_ns = network_bound_ns(data, bucket)) add_bound(*bound_ns, row);
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const Collective& row) { return std::tuple(row.time_ns.value_or(-1), row.bytes); });
  return rows;
}

void add_communication(const Profile& data, std::vector<RooflineRow>& rows, RooflineRow& total) {
  struct Sum {
    bool any = false;  // collectives that it caused
    std::int64_t caused_ns = 0;
    std::int64_t exposed_ns = 0;
    std::int64_t hidden_ns = 0;
  };
  std::vector<Sum> sums(data.tree.modules.size() + 1);  // the last one is of all
  const auto add = [&](ModuleId module, auto add_to) {
    add_to(sums.back());
    for (; module >= 0; module = data.tree.modules[index_of(module)].parent) add_to(sums[index_of(module)]);
  };
  bool any = false;
  for (const auto& bucket : data.comms->collectives) {
    if (bucket.timed_calls == 0) continue;
    any = true;
    add(data.counts.ops[static_cast<std::size_t>(bucket.bucket)].owner.module, [&](Sum& sum) {
      sum.any = true;
      sum.caused_ns = saturating_add(sum.caused_ns, bucket.time_ns);
    });
  }
  const auto exposed = any ? exposed_by_module(data) : std::nullopt;
  for (std::size_t id = 0; exposed && id < exposed->size(); ++id) {
    add(static_cast<ModuleId>(id),
        [&](Sum& sum) { sum.exposed_ns = saturating_add(sum.exposed_ns, (*exposed)[id].time_ns); });
  }
  const auto hidden = any ? hidden_times(data) : std::nullopt;
  for (const auto& part : hidden.value_or(std::vector<HiddenTime>{})) {
    add(part.owner.module, [&](Sum& sum) { sum.hidden_ns = saturating_add(sum.hidden_ns, part.ns); });
  }
  const auto add_to_row = [&](const Sum& sum, RooflineRow& row) {
    if (sum.any) row.communication_ns = sum.caused_ns;
    if (sum.any && hidden && row.time_ns) row.hidden_communication_ns = sum.hidden_ns;
    if (exposed && row.time_ns) row.exposed_communication_ns = sum.exposed_ns;
  };
  const auto ids = row_modules(data);
  for (std::size_t i = 0; i < rows.size(); ++i) add_to_row(sums[index_of(ids[i])], rows[i]);
  add_to_row(sums.back(), total);
}

namespace {

// Returns whether no rank's call ends before all ranks have called.
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

// Returns whether all ranks give a call the same size. In other kinds the sizes of the ranks' parts may differ.
bool has_one_size(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

bool is_between_two(CollectiveKind kind) { return kind == CollectiveKind::send || kind == CollectiveKind::recv; }

}  // namespace

std::int64_t MergedCollectives::group_of(const ProcessGroup& group) {
  const auto [place, fresh] = group_places_.try_emplace(group.name + "\n" + group.members, std::ssize(groups_));
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

void MergedCollectives::add(const Profile& data, const MergedIndices& indices, const std::vector<std::int64_t>& buckets,
                            const std::string& host, const RankClock& clock) {
  std::vector<std::int64_t> places;
  for (const auto& own : data.comms->collectives) {
    const auto group = group_of(data.comms->groups[static_cast<std::size_t>(own.group)]);
    hosts_[static_cast<std::size_t>(group)].insert(host);
    const auto place = collective_of_bucket(buckets[static_cast<std::size_t>(own.bucket)], group);
    places.push_back(place);
    auto& sum = collectives_[static_cast<std::size_t>(place)];
    sum.calls = saturating_add(sum.calls, own.calls);
    sum.timed_calls = saturating_add(sum.timed_calls, own.timed_calls);
    sum.time_ns = saturating_add(sum.time_ns, own.time_ns);
    sum.exposed_ns = saturating_add(sum.exposed_ns, own.exposed_ns);
    sum.exposed_known = sum.exposed_known && own.exposed_known;
    sum.uneven = sum.uneven || own.uneven;
    if (sum.algorithm.find(own.algorithm) == std::string::npos) add_item(sum.algorithm, own.algorithm);
  }
  places_known_ = places_known_ && exposed_by_module(data).has_value();
  for (const auto& part : data.comms->exposed_in) {
    auto& sum_ns = exposed_in_[{places[static_cast<std::size_t>(part.collective)], indices.owner(part.owner)}];
    sum_ns = saturating_add(sum_ns, part.exposed_ns);
  }
  time_.add(data.comms->time_ns);
  exposed_.add(data.comms->exposed_ns);
  const std::int64_t rank = ranks_++;
  if (!clock.offset && !clock.aligned_by_ends) return;
  if (!clock.offset && !data.comms->calls.empty()) floating_.emplace(rank, clock.of_first_host);
  const auto offset = clock.offset.value_or(ClockOffset{});
  error_ns_ = std::max(error_ns_, offset.error_ns);
  for (const auto& call : data.comms->calls) {
    const auto& own = data.comms->collectives[static_cast<std::size_t>(call.collective)];
    const auto& called = data.counts.ops[static_cast<std::size_t>(own.bucket)];
    const auto& name = called.op;
    const auto kind = collective_of(name);
    if (!kind || is_between_two(*kind) || call.sequence < 0) continue;
    const bool is_sized = has_one_size(*kind) && called.costed && called.calls > 0;
    const auto bytes = is_sized ? message_bytes(*kind, called.work, 1) / called.calls : 0;
    const auto op = ops_.try_emplace(name, std::ssize(ops_)).first->second;
    const auto place = places[static_cast<std::size_t>(call.collective)];
    const auto group = collectives_[static_cast<std::size_t>(place)].group;
    calls_.push_back({{group, op, call.sequence, bytes},
                      place,
                      rank,
                      call.begin_ns + offset.offset_ns,
                      call.end_ns + offset.offset_ns});
  }
}

const std::string& MergedCollectives::name_of_op(std::int64_t op) const {
  return std::ranges::find(ops_, op, [](const auto& known) { return known.second; })->first;
}

std::map<std::int64_t, MergedCollectives::Differences> MergedCollectives::differences(
    const std::map<std::int64_t, ClockOffset>& known) const {
  std::map<std::int64_t, Differences> all;
  for (auto first = calls_.begin(); first != calls_.end();) {
    const auto last =
        std::ranges::find_if(first, calls_.end(), [&](const Call& call) { return call.instance != first->instance; });
    const auto reference = std::find_if(first, last, [&](const Call& call) { return known.contains(call.rank); });
    if (reference != last && synchronizes(*collective_of(name_of_op(first->instance.op)))) {
      const auto& clock = known.at(reference->rank);
      for (auto call = first; call != last; ++call) {
        if (known.contains(call->rank) || !floating_.contains(call->rank)) continue;
        auto& found = all[call->rank];
        found.ns.push_back(reference->end_ns + clock.offset_ns - call->end_ns);
        found.lengths.push_back(call->end_ns - call->begin_ns);
        found.error_ns = std::max(found.error_ns, clock.error_ns);
      }
    }
    first = last;
  }
  return all;
}

std::vector<AlignedClock> MergedCollectives::align() {
  constexpr std::size_t kLeastShared = 3;  // fewer do not show whether they agree
  constexpr double kMost = 0.9;
  std::ranges::sort(calls_, {}, [](const Call& call) { return std::tuple(call.instance, call.rank); });
  std::map<std::int64_t, ClockOffset> known;
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    if (!floating_.contains(rank)) known[rank];  // its calls are by the first one's clock
  }
  std::vector<AlignedClock> aligned;
  // Ranks that share no group with the first one are aligned to those that do.
  for (bool more = !floating_.empty(); more;) {
    std::map<std::int64_t, ClockOffset> found;
    for (auto& [rank, shared] : differences(known)) {
      if (shared.ns.size() < kLeastShared) continue;
      const auto offset = static_cast<std::int64_t>(median(shared.ns));
      std::vector<std::int64_t> off;
      for (const auto ns : shared.ns) off.push_back(std::abs(ns - offset));
      std::ranges::sort(off);
      const auto most = off[static_cast<std::size_t>(kMost * static_cast<double>(off.size() - 1))];
      if (static_cast<double>(most) > median(shared.lengths)) continue;  // these are not the same calls
      found[rank] = {offset, saturating_add(most, shared.error_ns)};
      aligned.push_back({rank, std::ssize(shared.ns), false, found[rank]});
    }
    more = !found.empty();
    known.merge(found);
  }
  for (const auto& [rank, of_first_host] : floating_) {
    if (known.contains(rank)) continue;
    aligned.push_back({rank, 0, of_first_host, {}});
    if (of_first_host) known[rank];
  }
  for (auto& call : calls_) {
    if (!floating_.contains(call.rank) || !known.contains(call.rank)) continue;
    call.begin_ns += known.at(call.rank).offset_ns;
    call.end_ns += known.at(call.rank).offset_ns;
  }
  std::erase_if(calls_, [&](const Call& call) { return !known.contains(call.rank); });
  for (const auto& clock : aligned) error_ns_ = std::max(error_ns_, clock.clock.error_ns);
  std::ranges::sort(aligned, {}, &AlignedClock::rank);
  return aligned;
}

void MergedCollectives::split(const Call* first, const Call* last, CollectiveData& data,
                              std::vector<Intervals>& waits) const {
  const auto& group = groups_[static_cast<std::size_t>(first->instance.group)];
  if (last - first != group.ranks) return;
  const auto all_called =
      std::max_element(first, last, [](const Call& a, const Call& b) { return a.begin_ns < b.begin_ns; })->begin_ns;
  const auto first_end =
      std::min_element(first, last, [](const Call& a, const Call& b) { return a.end_ns < b.end_ns; })->end_ns;
  // Else these are not the same call.
  if (synchronizes(*collective_of(name_of_op(first->instance.op))) && all_called > first_end + 2 * error_ns_) return;
  for (const auto* call = first; call != last; ++call) {
    auto& collective = data.collectives[static_cast<std::size_t>(call->collective)];
    const auto wait = std::clamp<std::int64_t>(all_called, call->begin_ns, call->end_ns) - call->begin_ns;
    ++collective.waited_calls;
    collective.wait_ns += wait;
    collective.transfer_ns += call->end_ns - call->begin_ns - wait;
    waits[static_cast<std::size_t>(call->rank)].push_back({call->begin_ns, call->begin_ns + wait});
  }
}

CollectiveData MergedCollectives::finish(std::vector<std::optional<std::int64_t>>& waiting) {
  CollectiveData data;
  waiting.assign(static_cast<std::size_t>(ranks_), std::nullopt);
  data.groups = groups_;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].contains("")) data.groups[i].hosts = std::ssize(hosts_[i]);
  }
  data.collectives = collectives_;
  for (const auto& [place, exposed_ns] : exposed_in_) {
    if (places_known_) data.exposed_in.push_back({place.first, place.second, exposed_ns});
  }
  data.time_ns = time_.value();
  data.exposed_ns = exposed_.value();
  std::vector<Intervals> waits(static_cast<std::size_t>(ranks_));
  std::ranges::sort(calls_, {}, &Call::instance);
  for (auto first = calls_.begin(); first != calls_.end();) {
    const auto last =
        std::ranges::find_if(first, calls_.end(), [&](const Call& call) { return call.instance != first->instance; });
    split(&*first, &*first + (last - first), data, waits);
    first = last;
  }
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i].empty()) continue;
    unite(waits[i]);
    waiting[i] = length_of(waits[i]);
  }
  return data;
}

}  // namespace roofprof
