#include "join/kernel_buckets.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/median.h"

namespace roofprof {

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
  bucket.attributed = launch.attributed;
  return bucket;
}

void summarize(const std::vector<std::int64_t>& durations, KernelBucket& bucket) {
  const auto count = static_cast<double>(durations.size());
  for (const auto ns : durations) bucket.total_ns = saturating_add(bucket.total_ns, ns);
  const auto [least, most] = std::minmax_element(durations.begin(), durations.end());
  bucket.instances = static_cast<std::int64_t>(durations.size());
  bucket.min_ns = *least;
  bucket.max_ns = *most;
  bucket.median_ns = std::llround(median(durations));
  if (durations.size() < 2) return;
  const double mean = static_cast<double>(bucket.total_ns) / count;
  double squares = 0;
  for (const auto ns : durations) squares += (static_cast<double>(ns) - mean) * (static_cast<double>(ns) - mean);
  bucket.stddev_ns = std::sqrt(squares / (count - 1));
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
                      std::string_view(owner.op));
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
  for (std::size_t i = 0; i < durations.size(); ++i) summarize(durations[i], result.buckets[i]);
  return result;
}

bool crosses_host_link(const KernelBucket& kernel) {
  const auto on_host = [](Memory memory) { return memory == Memory::pageable || memory == Memory::pinned; };
  if (kernel.kind != KernelKind::copy) return false;
  return (on_host(kernel.from) && kernel.to == Memory::device) || (kernel.from == Memory::device && on_host(kernel.to));
}

}  // namespace roofprof
