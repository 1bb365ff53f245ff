#include "join/device_launches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/median.h"

namespace roofprof {

namespace {

using BucketsByInputs = std::map<OpKey, std::int64_t>;  // -1: the same inputs had several results

BucketsByInputs buckets_by_inputs(const std::vector<Pass::Op>& ops) {
  BucketsByInputs buckets;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].number == 0) continue;
    const auto [bucket, fresh] = buckets.try_emplace(ops[i].inputs_key(), static_cast<std::int64_t>(i));
    if (!fresh) bucket->second = -1;
  }
  return buckets;
}

std::int64_t bucket_by_inputs(OpKey launch, const BucketsByInputs& buckets) {
  auto found = buckets.find(launch);
  if (found == buckets.end()) {
    launch.signature = kAnyInputs;
    found = buckets.find(launch);
  }
  return found == buckets.end() ? -1 : found->second;
}

}  // namespace

std::vector<LaunchOwner> launch_owners(const std::vector<LaunchKey>& launches, const std::vector<Pass::Op>& ops) {
  const auto buckets = buckets_by_inputs(ops);
  // One bucket of the module that runs compiled code has all that this code does.
  std::map<Owner, std::int64_t> compiled;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].op != kCompiledRegion || !ops[i].costed) continue;
    compiled.try_emplace(ops[i].owner, static_cast<std::int64_t>(i));
  }
  std::vector<LaunchOwner> owners;
  for (const auto& [key, op] : launches) {
    LaunchOwner owner{key.owner, op};
    if (key.op != 0) {
      const auto region = compiled.find(key.owner);
      owner.bucket = region == compiled.end() ? bucket_by_inputs(key, buckets) : region->second;
    }
    owners.push_back(std::move(owner));
  }
  return owners;
}

namespace {

// Returns the number of kernels of each owner.
std::vector<std::int64_t> kernels_by_owner(const DeviceTrace& trace, std::size_t owners) {
  std::vector<std::int64_t> kernels(owners);
  for (const auto& record : trace.records) {
    if (record.kind != KernelKind::kernel || record.end_ns < record.start_ns) continue;
    const auto owner = owner_of_launch(record.launch);
    ++kernels[owner < owners ? owner : kNoLaunch];
  }
  return kernels;
}

// Returns the owners of ops that were counted and that the traced pass did not run.
std::set<Owner> owners_of_what_did_not_run(const Pass& counting, const Pass& traced) {
  std::set<OpKey> ran;
  for (const auto& op : traced.ops) ran.insert(op.key());
  std::set<Owner> owners;
  for (const auto& op : counting.ops) {
    if (!op.is_unobserved() && op.has_work() && !ran.contains(op.key())) owners.insert(op.owner);
  }
  return owners;
}

}  // namespace

void add_own_kernels(const std::vector<LaunchKey>& launches, const Pass& counting, const Pass& traced,
                     std::vector<LaunchOwner>& owners, std::vector<Pass::Op>& ops) {
  if (!traced.device || owners.empty()) return;
  const auto kernels = kernels_by_owner(*traced.device, owners.size());
  const auto known = buckets_by_inputs(ops);
  const auto elsewhere = owners_of_what_did_not_run(counting, traced);
  std::set<ModuleId> unobserved;
  for (const auto& op : ops) {
    if (op.is_unobserved()) unobserved.insert(op.owner.module);
  }
  const auto is_own = [&](const LaunchOwner& owner, OpKey key) {
    if (elsewhere.contains(owner.owner) || unobserved.contains(owner.owner.module)) return false;
    if (key.op == 0) return owner.op.empty();
    if (key.signature == kAnyInputs || known.contains(key)) return false;
    key.signature = kAnyInputs;
    return !known.contains(key);
  };
  std::map<std::pair<Owner, std::string>, std::size_t> added;
  for (std::size_t id = 0; id < owners.size(); ++id) {
    auto& owner = owners[id];
    if (kernels[id] == 0 || owner.bucket >= 0 || !is_own(owner, launches[id].key)) continue;
    if (owner.op.empty()) owner.op = kNoOperator;
    const auto [bucket, fresh] = added.try_emplace({owner.owner, owner.op}, ops.size());
    if (fresh) {
      auto& op = ops.emplace_back();
      op.op = owner.op;
      op.owner = owner.owner;
      op.costed = false;
    }
    ops[bucket->second].calls += kernels[id];
    owner.bucket = static_cast<std::int64_t>(bucket->second);
  }
}

namespace {

const LaunchOwner kNobody;  // outside of the model, by no op

}  // namespace

void check_owners(const std::vector<LaunchOwner>& owners, std::size_t modules, std::size_t ops) {
  for (const auto& owner : owners) {
    if (owner.owner.module < 0 || index_of(owner.owner.module) >= modules) {
      throw InvalidArgument("a launch's place names module " + std::to_string(owner.owner.module) +
                            ", which the profile has not");
    }
    if (std::cmp_greater_equal(owner.bucket, ops)) {
      throw InvalidArgument("a launch's place names op " + std::to_string(owner.bucket) +
                            ", which the profile has not");
    }
  }
}

namespace {

// Correlation ids are numbers of 32 bits that begin again after the last. Ids of one trace that are half of all apart
// are from before and after that.
class LaunchOrder {
 public:
  explicit LaunchOrder(const std::vector<const KernelRecord*>& records) {
    std::uint64_t largest = 0;
    for (const auto* record : records) largest = std::max(largest, record->correlation);
    if (largest >= kAll) return;
    after_ = std::ranges::any_of(records, [&](const KernelRecord* record) {
      return record->correlation != 0 && record->correlation + kAll / 2 < largest;
    });
  }
  std::uint64_t operator()(std::uint64_t correlation) const {
    return after_ && correlation < kAll / 2 ? correlation + kAll : correlation;
  }

 private:
  static constexpr std::uint64_t kAll = std::uint64_t{1} << 32;
  bool after_ = false;
};

}  // namespace

std::vector<const KernelRecord*> in_launch_order(const DeviceTrace& trace) {
  std::vector<const KernelRecord*> records;
  records.reserve(trace.records.size());
  for (const auto& record : trace.records) {
    if (record.end_ns >= record.start_ns) records.push_back(&record);
  }
  const LaunchOrder launched(records);
  const auto order = [&](const KernelRecord* record) {
    return std::tuple(launched(record->correlation), record->graph_node, record->start_ns);
  };
  std::ranges::stable_sort(records, {}, order);
  return records;
}

bool same_launch(const KernelRecord& a, const DeviceTrace& trace_of_a, const KernelRecord& b,
                 const DeviceTrace& trace_of_b) {
  if (a.kind != b.kind || a.grid != b.grid || a.block != b.block) return false;
  if ((a.graph_node != 0) != (b.graph_node != 0)) return false;
  if (a.kind == KernelKind::kernel) return trace_of_a.names.at(a.name) == trace_of_b.names.at(b.name);
  return a.from == b.from && a.to == b.to && a.bytes == b.bytes;
}

Launches launches_of(const DeviceTrace& trace, const std::vector<LaunchOwner>& owners) {
  Launches launches;
  launches.trace = &trace;
  for (const auto& record : trace.records) {
    if (record.kind == KernelKind::kernel && record.name >= trace.names.size()) {
      throw InvalidArgument("a kernel's record has name " + std::to_string(record.name) + ", which its trace has not");
    }
  }
  const LaunchOwner* const nobody = owners.empty() ? &kNobody : &owners.front();
  const auto records = in_launch_order(trace);
  launches.backwards = std::ssize(trace.records) - std::ssize(records);
  launches.in_order.reserve(records.size());
  for (const auto* record : records) {
    const auto owner = owner_of_launch(record->launch);
    const bool known = owner != kNoLaunch && owner < owners.size();
    launches.in_order.push_back({record, known ? &owners[owner] : nobody, known});
  }
  return launches;
}

namespace {

// Kernels that have one text in several entries of the names are one.
std::vector<std::size_t> first_entry_of_each(const std::vector<std::string>& names) {
  std::map<std::string_view, std::size_t> first;
  std::vector<std::size_t> entries;
  entries.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) entries.push_back(first.try_emplace(names[i], i).first->second);
  return entries;
}

KernelBucket bucket_of(const Launch& launch, const std::vector<std::string>& names) {
  const KernelRecord& record = *launch.record;
  KernelBucket bucket;
  bucket.name = name_of_launch(record, names);
  bucket.kind = record.kind;
  bucket.from = record.from;
  bucket.to = record.to;
  bucket.device = record.device;
  bucket.grid = record.grid;
  bucket.block = record.block;
  bucket.in_graph = record.graph_node != 0;
  bucket.owner = launch.owner->owner;
  bucket.op = launch.owner->op;
  bucket.bucket = launch.owner->bucket;
  bucket.compiled = launch.owner->compiled;
  bucket.attributed = launch.attributed;
  return bucket;
}

}  // namespace

std::string name_of_launch(const KernelRecord& record, const std::vector<std::string>& names) {
  switch (record.kind) {
    case KernelKind::kernel:
      return names[record.name];
    case KernelKind::fill:
      return "[memset]";
    case KernelKind::copy:
      break;
  }
  std::string from(kMemoryNames[static_cast<std::size_t>(record.from)]);
  std::string to(kMemoryNames[static_cast<std::size_t>(record.to)]);
  if (record.to_device != record.device) {
    from += " " + std::to_string(record.device);
    to += " " + std::to_string(record.to_device);
  }
  return "[memcpy " + from + " to " + to + "]";
}

KernelBuckets kernel_buckets(const Launches& launches) {
  const auto& names = launches.trace->names;
  const auto entries = first_entry_of_each(names);
  const auto key_of = [&](const Launch& launch) {
    const KernelRecord& record = *launch.record;
    const LaunchOwner& owner = *launch.owner;
    const std::size_t name = record.kind == KernelKind::kernel ? entries[record.name] : 0;
    return std::tuple(record.kind, name, record.from, record.to, record.device, record.to_device, record.grid,
                      record.block, record.graph_node != 0, launch.attributed, owner.owner, owner.bucket,
                      owner.compiled, std::string_view(owner.op));
  };
  std::map<decltype(key_of(std::declval<Launch>())), std::size_t> index;
  std::vector<std::vector<std::int64_t>> durations;
  KernelBuckets result;
  result.of_launch.reserve(launches.in_order.size());
  for (const auto& launch : launches.in_order) {
    const auto [found, is_new] = index.try_emplace(key_of(launch), result.buckets.size());
    if (is_new) {
      result.buckets.push_back(bucket_of(launch, names));
      durations.emplace_back();
    }
    KernelBucket& bucket = result.buckets[found->second];
    bucket.bytes = saturating_add(bucket.bytes, launch.record->bytes);
    durations[found->second].push_back(launch.duration_ns());
    result.of_launch.push_back(found->second);
  }
  for (std::size_t i = 0; i < durations.size(); ++i) summarize(durations[i], durations[i], result.buckets[i]);
  return result;
}

bool crosses_host_link(const KernelBucket& kernel) {
  const auto on_host = [](Memory memory) { return memory == Memory::pageable || memory == Memory::pinned; };
  if (kernel.kind != KernelKind::copy) return false;
  return (on_host(kernel.from) && kernel.to == Memory::device) || (kernel.from == Memory::device && on_host(kernel.to));
}

}  // namespace roofprof
