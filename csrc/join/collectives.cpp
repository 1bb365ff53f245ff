#include "join/collectives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/collective_kinds.h"
#include "core/note_codes.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

struct Change {
  std::int64_t at_ns = 0;
  int under_way = 0;  // +1: one begins, -1: one ends
  int computing = 0;
};

std::vector<Change> changes_of(const Intervals& under_way, const Intervals& computed) {
  std::vector<Change> changes;
  changes.reserve(2 * (under_way.size() + computed.size()));
  for (const auto& one : under_way) {
    changes.push_back({one.begin_ns, 1, 0});
    changes.push_back({one.end_ns, -1, 0});
  }
  for (const auto& one : computed) {
    changes.push_back({one.begin_ns, 0, 1});
    changes.push_back({one.end_ns, 0, -1});
  }
  std::ranges::stable_sort(changes, {}, &Change::at_ns);
  return changes;
}

using CountKey = std::pair<OpKey, std::string>;  // an operator with a signature, in a group of that name

CountKey key_of(const Pass& pass, const PassCollectives::Count& count) {
  return {pass.ops[static_cast<std::size_t>(count.op)].key(),
          pass.collectives.groups[static_cast<std::size_t>(count.group)].name};
}

class Timed {
 public:
  explicit Timed(CollectiveData& data) : data_(data) {}

  void add(const std::vector<CollectiveCall>& calls, const PassCollectives& pass) {
    Intervals under_way;
    for (const auto& call : calls) under_way.push_back({call.begin_ns, call.end_ns});
    const auto exposed = exposed_shares(under_way, pass.computed);
    std::map<std::int64_t, double> sums;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto& bucket = data_.collectives[static_cast<std::size_t>(calls[i].collective)];
      const bool known = calls[i].end_ns <= pass.computed_until;
      bucket.exposed_known = known && (bucket.timed_calls == 0 || bucket.exposed_known);
      ++bucket.timed_calls;
      bucket.time_ns += calls[i].end_ns - calls[i].begin_ns;
      sums[calls[i].collective] += exposed[i];
    }
    double all = 0;
    for (const auto& [collective, sum] : sums) {
      data_.collectives[static_cast<std::size_t>(collective)].exposed_ns += std::llround(sum);
      all += sum;
    }
    unite(under_way);
    data_.time_ns = length_of(under_way);
    const bool all_known = calls.empty() || under_way.back().end_ns <= pass.computed_until;
    if (all_known) data_.exposed_ns = std::llround(all);
    if (all_known && pass.all_ran) data_.exposed_in = exposed_by_place(calls, pass);
    data_.calls = calls;
    std::ranges::stable_sort(data_.calls, {}, &CollectiveCall::begin_ns);
  }

 private:
  CollectiveData& data_;
};

}  // namespace

std::vector<double> exposed_shares(const Intervals& under_way, Intervals computed) {
  unite(computed);
  // The share of an interval that was under way from the beginning until each time.
  std::map<std::int64_t, double> shared;
  double share = 0;
  int calls = 0, computing = 0;
  std::int64_t since = 0;
  for (const auto& change : changes_of(under_way, computed)) {
    if (calls > 0 && computing == 0) share += static_cast<double>(change.at_ns - since) / calls;
    since = change.at_ns;
    calls += change.under_way;
    computing += change.computing;
    if (change.under_way != 0) shared[change.at_ns] = share;
  }
  std::vector<double> shares;
  shares.reserve(under_way.size());
  for (const auto& one : under_way) shares.push_back(shared.at(one.end_ns) - shared.at(one.begin_ns));
  return shares;
}

std::vector<ExposedIn> exposed_by_place(const std::vector<CollectiveCall>& calls, const PassCollectives& pass) {
  struct Step {
    std::int64_t at_ns = 0;
    int change = 0;  // +1: it begins, -1: it ends
    std::int64_t collective = -1;
    const RanIn* ran = nullptr;
  };
  Intervals computed = pass.computed;
  unite(computed);
  std::vector<Step> steps;
  for (const auto& call : calls) {
    steps.push_back({call.begin_ns, 1, call.collective});
    steps.push_back({call.end_ns, -1, call.collective});
  }
  for (const auto& ran : pass.ran) {
    steps.push_back({ran.begin_ns, 1, -1, &ran});
    steps.push_back({ran.end_ns, -1, -1, &ran});
  }
  for (const auto& one : computed) {
    steps.push_back({one.begin_ns, 1});
    steps.push_back({one.end_ns, -1});
  }
  std::ranges::stable_sort(steps, {}, &Step::at_ns);

  std::map<std::int64_t, int> under_way;
  std::map<Owner, int> running;
  std::map<std::pair<std::int64_t, Owner>, double> sums;
  int all = 0, computing = 0;
  std::int64_t since = 0;
  const auto add_to = [](auto& counts, const auto& key, int change) {
    auto& count = counts[key];
    count += change;
    if (count == 0) counts.erase(key);
  };
  for (const auto& step : steps) {
    const auto lasted = static_cast<double>(step.at_ns - since);
    since = step.at_ns;
    if (computing == 0 && lasted > 0) {
      for (const auto& [collective, calls_of_it] : under_way) {
        for (const auto& [owner, threads] : running) sums[{collective, owner}] += threads * lasted * calls_of_it / all;
      }
    }
    if (step.ran != nullptr) {
      add_to(running, step.ran->owner, step.change);
    } else if (step.collective >= 0) {
      add_to(under_way, step.collective, step.change);
      all += step.change;
    } else {
      computing += step.change;
    }
  }
  std::vector<ExposedIn> exposed;
  for (const auto& [key, ns] : sums) {
    if (std::llround(ns) > 0) exposed.push_back({key.first, key.second, std::llround(ns)});
  }
  return exposed;
}

CollectiveData collective_data(const Pass& counting, const Pass* timed, const std::vector<Pass::Op>& counted) {
  CollectiveData data;
  data.groups = counting.collectives.groups;
  const auto buckets = indices_by_key(counted);
  std::map<CountKey, std::int64_t> places;
  for (const auto& count : counting.collectives.counts) {
    const auto key = key_of(counting, count);
    const auto bucket = buckets.find(key.first);
    if (bucket == buckets.end()) continue;
    places.emplace(key, std::ssize(data.collectives));
    data.collectives.push_back(
        {.bucket = bucket->second, .group = count.group, .calls = count.calls, .uneven = count.uneven});
  }
  if (timed == nullptr) return data;
  std::vector<std::int64_t> place_of_count;
  for (const auto& count : timed->collectives.counts) {
    const auto place = places.find(key_of(*timed, count));
    place_of_count.push_back(place == places.end() ? -1 : place->second);
  }
  std::vector<CollectiveCall> calls;
  for (auto call : timed->collectives.calls) {
    call.collective = place_of_count[static_cast<std::size_t>(call.collective)];
    if (call.collective >= 0) calls.push_back(call);
  }
  const bool is_timed = !calls.empty() || data.collectives.empty();
  if (is_timed) Timed(data).add(calls, timed->collectives);
  return data;
}

namespace {

CollectiveData with_algorithms(CollectiveData data, const Launches& launches) {
  std::map<std::int64_t, std::set<std::string>> algorithms;  // by op
  for (const auto& collective : data.collectives) algorithms[collective.bucket];
  for (const auto& launch : launches.in_order) {
    const auto known = algorithms.find(launch.owner->bucket);
    if (known == algorithms.end() || launch.record->kind != KernelKind::kernel) continue;
    auto algorithm = algorithm_of_kernel(launches.trace->names[launch.record->name]);
    if (!algorithm.empty()) known->second.insert(std::move(algorithm));
  }
  for (auto& collective : data.collectives) {
    for (const auto& algorithm : algorithms[collective.bucket]) add_item(collective.algorithm, algorithm);
  }
  return data;
}

// Rows have the times of their own kernels.
std::vector<ExposedIn> exposed_in_own_rows(const CollectiveData& data, const std::vector<OpBucket>& ops) {
  std::vector<ExposedIn> exposed;
  for (std::int64_t i = 0; i < std::ssize(data.collectives); ++i) {
    const auto& collective = data.collectives[static_cast<std::size_t>(i)];
    const auto& op = ops[static_cast<std::size_t>(collective.bucket)];
    if (collective.exposed_ns > 0) exposed.push_back({i, op.owner, collective.exposed_ns});
  }
  return exposed;
}

}  // namespace

CollectiveData with_kernels_of_collectives(CollectiveData data, const std::vector<OpBucket>& ops,
                                           const Launches& launches, bool of_kernels) {
  data = with_algorithms(std::move(data), launches);
  if (of_kernels) {
    data.exposed_in = exposed_in_own_rows(data, ops);
    return data;
  }
  std::map<std::int64_t, std::int64_t> by_op;  // the collective of an op; -1: of several groups
  for (std::int64_t i = 0; i < std::ssize(data.collectives); ++i) {
    const auto& collective = data.collectives[static_cast<std::size_t>(i)];
    if (collective.timed_calls > 0) {  // the host timed it, and rows with times of a device exclude the host's
      data.exposed_in.clear();
      return data;
    }
    const auto [place, fresh] = by_op.try_emplace(collective.bucket, i);
    if (!fresh) place->second = -1;
  }
  std::map<std::uint32_t, std::vector<CollectiveCall>> calls;  // by device
  std::map<std::uint32_t, Intervals> computed;
  for (const auto& launch : launches.in_order) {
    const auto& record = *launch.record;
    const auto bucket = launch.owner->bucket;
    const auto collective = by_op.find(bucket);
    if (collective == by_op.end()) {
      const bool communicates = bucket >= 0 && is_communication(ops[static_cast<std::size_t>(bucket)].op);
      if (!communicates && record.kind == KernelKind::kernel)
        computed[record.device].push_back({record.start_ns, record.end_ns});
    } else if (collective->second >= 0) {
      calls[record.device].push_back({collective->second, -1, record.start_ns, record.end_ns});
    }
  }
  std::int64_t time_ns = 0, exposed_ns = 0;
  for (const auto& [device, own] : calls) {
    PassCollectives pass;
    pass.computed = computed[device];
    Timed(data).add(own, pass);
    time_ns += data.time_ns.value_or(0);
    exposed_ns += data.exposed_ns.value_or(0);
  }
  data.calls.clear();  // their clock is the device's
  if (calls.empty()) return data;
  data.time_ns = time_ns;
  data.exposed_ns = exposed_ns;
  data.exposed_in = exposed_in_own_rows(data, ops);
  // A collective may have launched several kernels.
  for (auto& collective : data.collectives) {
    if (collective.timed_calls > 0) collective.timed_calls = collective.calls;
  }
  return data;
}

std::vector<Note> notes_on_collectives(const CollectiveData& data, const PassCollectives& timed) {
  std::vector<Note> notes;
  const auto say = [&](std::int64_t calls, const std::string& why) {
    if (calls > 0) {
      add_note(notes, "collectives-untimed", counted(calls, "call") + " of collectives have no times: " + why);
    }
  };
  say(timed.left_out, "there was room for the first " + std::to_string(kCollectivesTimed));
  say(timed.unfinished, "they had not ended when the run did, or failed");
  const bool all_timed =
      std::ranges::all_of(data.collectives, [](const auto& collective) { return collective.timed_calls > 0; });
  if (!all_timed) say(timed.without_end, "their backend does not tell when they end");
  return notes;
}

}  // namespace roofprof
