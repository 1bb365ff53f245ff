#include "join/counter_join.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "join/attribution.h"

namespace roofprof {

namespace {

// The kernels of one run on the counted device, in launch order, and which of the run's launches they are.
struct Sequence {
  const DeviceTrace* trace;
  std::vector<const Launch*> kernels;
  std::vector<std::size_t> positions;

  const std::string& name(std::size_t i) const { return trace->names[kernels[i]->record->name]; }
  bool same(std::size_t i, const Sequence& other, std::size_t j) const {
    return same_launch(*kernels[i]->record, *trace, *other.kernels[j]->record, *other.trace);
  }
};

// Returns the index in the device's name, 1 for "cuda:1". If all kernels ran on one device, returns that one, whatever
// the name is.
std::optional<std::uint32_t> counted_device(const std::string& device, const Launches& launches) {
  std::set<std::uint32_t> devices;
  for (const auto& launch : launches.in_order) {
    if (launch.record->kind == KernelKind::kernel) devices.insert(launch.record->device);
  }
  if (devices.size() == 1) return *devices.begin();
  const std::size_t colon = device.find(':');
  std::uint32_t index = 0;
  if (colon == std::string::npos) return 0;
  const char* const end = device.data() + device.size();
  const auto [last, error] = std::from_chars(device.data() + colon + 1, end, index);
  return error == std::errc() && last == end ? std::optional(index) : std::nullopt;
}

Sequence sequence_of(const Launches& launches, std::optional<std::uint32_t> device) {
  Sequence sequence{launches.trace, {}, {}};
  for (std::size_t i = 0; i < launches.in_order.size(); ++i) {
    const KernelRecord& record = *launches.in_order[i].record;
    if (record.kind != KernelKind::kernel || (device && record.device != *device)) continue;
    sequence.kernels.push_back(&launches.in_order[i]);
    sequence.positions.push_back(i);
  }
  return sequence;
}

std::string shape_text(const std::array<std::int32_t, 3>& grid) {
  return std::to_string(grid[0]) + "x" + std::to_string(grid[1]) + "x" + std::to_string(grid[2]);
}

// The reasons against the join, and the modules that they concern.
struct Misfit {
  std::vector<std::string> reasons;
  std::set<ModuleId> modules;
};

std::string difference(const Sequence& chosen, std::size_t i, const Sequence& other, std::size_t j) {
  const std::string text = "launch " + std::to_string(i) + " was '" + chosen.name(i) + "' in one traced run and ";
  if (chosen.name(i) != other.name(j)) return text + "'" + other.name(j) + "' in another";
  const KernelRecord& a = *chosen.kernels[i]->record;
  const KernelRecord& b = *other.kernels[j]->record;
  return text + "in another, with a grid of " + shape_text(a.grid) + " and of " + shape_text(b.grid) + ", blocks of " +
         shape_text(a.block) + " and of " + shape_text(b.block);
}

// Returns a misfit if the numbers of ranges and launches differ: ranges have no names, so only their number can show
// that they fit.
Misfit count_misfit(const std::map<std::uint64_t, CounterValues>& values, std::int64_t dropped,
                    const Sequence& chosen) {
  const std::uint64_t past_last = values.empty() ? 0 : values.rbegin()->first + 1;
  const auto ranges =
      std::max(past_last, values.size() + static_cast<std::uint64_t>(std::max<std::int64_t>(dropped, 0)));
  if (ranges == chosen.kernels.size()) return {};
  Misfit misfit;
  misfit.reasons.push_back("their run launched " + std::to_string(ranges) + " kernels, the traced one " +
                           std::to_string(chosen.kernels.size()));
  for (const Launch* kernel : chosen.kernels) misfit.modules.insert(kernel->owner->owner.module);
  return misfit;
}

// Adds the parts of two runs between their common begin and end; if both launched the same number, each differing pair.
void compare(const Sequence& chosen, const Sequence& other, Misfit& misfit) {
  const std::size_t count = chosen.kernels.size();
  const std::size_t other_count = other.kernels.size();
  const std::size_t shorter = std::min(count, other_count);
  std::size_t first = 0;
  while (first < shorter && chosen.same(first, other, first)) ++first;
  if (first == shorter && count == other_count) return;
  std::size_t alike = 0;  // at the end
  while (alike < shorter - first && chosen.same(count - 1 - alike, other, other_count - 1 - alike)) ++alike;

  if (misfit.reasons.empty()) {  // further runs usually differ in the same way
    misfit.reasons.push_back(count == other_count ? difference(chosen, first, other, first)
                                                  : "one traced run launched " + std::to_string(count) +
                                                        " kernels and another " + std::to_string(other_count) +
                                                        ", different from launch " + std::to_string(first) + " on");
  }
  for (std::size_t i = first; i < count - alike; ++i) {
    if (count != other_count || !chosen.same(i, other, i))
      misfit.modules.insert(chosen.kernels[i]->owner->owner.module);
  }
  for (std::size_t i = first; i < other_count - alike; ++i) {
    if (count != other_count || !other.same(i, chosen, i)) misfit.modules.insert(other.kernels[i]->owner->owner.module);
  }
}

// Values by ordinal: what several records say of one launch is put together.
std::map<std::uint64_t, CounterValues> values_by_ordinal(const CounterTrace& counters) {
  std::map<std::uint64_t, CounterValues> values;
  for (const auto& record : counters.records) {
    CounterValues& known = values[record.range];
    for (std::size_t i = 0; i < kCounterCount; ++i) {
      if (record.values[i]) known[i] = record.values[i];
    }
  }
  return values;
}

std::string named_modules(std::vector<std::string> paths) {
  for (auto& path : paths) {
    if (path.empty()) path = "the model's own kernels";
  }
  return listed(paths, kNamed);
}

void add_other_devices(const std::vector<KernelBucket>& kernels, std::optional<std::uint32_t> device, Misfit& misfit) {
  if (!device) return;
  bool any = false;
  for (const auto& bucket : kernels) {
    if (bucket.kind != KernelKind::kernel || bucket.device == std::int64_t{*device}) continue;
    any = true;
    misfit.modules.insert(bucket.owner.module);
  }
  if (any) misfit.reasons.push_back("they were read on device " + std::to_string(*device) + " alone");
}

std::vector<Note> notes_on(const Misfit& misfit, const std::vector<Module>& modules) {
  if (misfit.reasons.empty()) return {};
  std::string text = "counters: ";
  for (std::size_t i = 0; i < misfit.reasons.size(); ++i) text += (i > 0 ? "; " : "") + misfit.reasons[i];
  auto where = paths_of(misfit.modules, modules);
  if (!where.empty()) text += ": no measured bytes for " + named_modules(where) + " and the rows above";
  return {make_note("counters-mismatched", std::move(text), std::move(where))};
}

bool holds_any(const CounterValues& values) {
  return std::any_of(values.begin(), values.end(), [](const auto& value) { return value.has_value(); });
}

std::optional<double> plus(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

// Sums each counter that all added values have.
void add(const CounterValues& values, bool first, CounterValues& sum) {
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    if (first) {
      sum[i] = values[i];
    } else {
      sum[i] = plus(sum[i], values[i]);
    }
  }
}

}  // namespace

CountedKernels count_kernels(const CounterTrace& counters, KernelBuckets kernels, const std::vector<Launches>& launches,
                             std::size_t chosen, const std::string& device_name, const std::vector<Module>& modules) {
  const auto device = counted_device(device_name, launches[chosen]);
  const Sequence sequence = sequence_of(launches[chosen], device);
  const auto values = values_by_ordinal(counters);
  Misfit misfit = count_misfit(values, counters.dropped, sequence);
  const bool comparable = misfit.reasons.empty();
  for (std::size_t run = 0; run < launches.size() && comparable; ++run) {
    if (run != chosen) compare(sequence, sequence_of(launches[run], device), misfit);
  }
  for (auto& bucket : kernels.buckets) {
    bucket.mismatched = bucket.kind == KernelKind::kernel && misfit.modules.contains(bucket.owner.module);
  }

  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < sequence.kernels.size(); ++i) {
    KernelBucket& bucket = kernels.buckets[kernels.of_launch[sequence.positions[i]]];
    if (bucket.mismatched) continue;
    const auto found = values.find(i);
    if (found != values.end() && holds_any(found->second)) {
      add(found->second, bucket.counted++ == 0, bucket.counters);
    } else {
      missing.push_back(i);
      misfit.modules.insert(bucket.owner.module);
    }
  }
  if (!missing.empty()) {
    misfit.reasons.push_back("no values for launch " + std::to_string(missing.front()) + ", '" +
                             sequence.name(missing.front()) + "'" +
                             (missing.size() > 1 ? ", and " + std::to_string(missing.size() - 1) + " more" : ""));
  }
  add_other_devices(kernels.buckets, device, misfit);
  return {std::move(kernels.buckets), notes_on(misfit, modules)};
}

std::vector<const Launch*> counted_kernels(const Launches& launches, const std::string& device) {
  return sequence_of(launches, counted_device(device, launches)).kernels;
}

CountedModules count_modules(const CounterTrace& counters, const std::vector<LaunchOwner>& owners) {
  CountedModules counted;
  if (counters.dropped > 0) {
    add_note(counted.notes, "counters-mismatched",
             "counters: there was no room for " + std::to_string(counters.dropped) +
                 " ranges of modules; modules that had them have no measured bytes");
  }
  static const LaunchOwner kNobodys;
  std::map<Owner, CounterValues> sums;
  for (const auto& record : counters.records) {
    const bool known = record.range < owners.size();
    const auto& owner = known ? owners[record.range] : kNobodys;
    const auto [sum, is_new] = sums.try_emplace(owner.owner);
    add(record.values, is_new, sum->second);
  }
  for (const auto& [owner, sum] : sums) counted.modules.push_back({owner, sum});
  return counted;
}

namespace {

// NCCL's kernels (ncclDevKernel_..., ncclKernel_...), NVSHMEM's, those of torch's distributed library and of its
// symmetric memory, which are in no namespace, and vLLM's all-reduce.
constexpr std::array<std::string_view, 6> kWaiting = {"nccl",      "nvshmem",          "c10d",
                                                      "multimem_", "_shot_all_reduce", "cross_device_reduce"};

constexpr std::string_view kAlternatives = R"(: count by module (counters="modules"), or not at all (counters="off"))";

}  // namespace

bool must_not_be_serialised(std::string_view kernel_name) {
  return std::ranges::any_of(
      kWaiting, [kernel_name](std::string_view part) { return kernel_name.find(part) != std::string_view::npos; });
}

std::string why_not_kernel_by_kernel(const DeviceTrace& trace) {
  for (const KernelRecord& record : trace.records) {
    if (record.kind != KernelKind::kernel) continue;
    const std::string& name = trace.names.at(record.name);
    if (must_not_be_serialised(name)) {
      return "counters kernel by kernel were left out, as " + name +
             " waits for other devices and would hang when it is run alone" + std::string(kAlternatives);
    }
  }
  if (std::ranges::any_of(trace.records, [](const KernelRecord& record) { return record.graph_node != 0; })) {
    return "counters kernel by kernel were left out, as CUDA graphs launch many kernels at once, and how CUPTI counts "
           "these is not documented" +
           std::string(kAlternatives);
  }
  return "";
}

}  // namespace roofprof
