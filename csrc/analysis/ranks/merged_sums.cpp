#include "analysis/ranks/merged_sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "core/counted_bytes.h"

namespace roofprof {

namespace {

void keep_most(std::optional<std::int64_t>& most, const std::optional<std::int64_t>& value) {
  if (value && (!most || *value > *most)) most = value;
}

// A region has another row than a module of the same path.
std::string key_of(const Module& module) { return module.path + (module.type == kRegionType ? "\n" : ""); }

}  // namespace

MergedIndices MergedTree::add(const Profile& data) {
  std::vector<Own> own(data.tree.modules.size());
  for (std::size_t id = 0; id < own.size(); ++id) {
    const auto& module = data.tree.modules[id];
    for (const auto& [of_module, of_own] : kSizes) own[id].*of_own += module.*of_module;
    if (module.parent < 0) continue;
    for (const auto& [of_module, of_own] : kSizes) own[index_of(module.parent)].*of_own -= module.*of_module;
  }
  MergedIndices indices;
  for (std::size_t id = 0; id < own.size(); ++id) add_module(data.tree.modules[id], own[id], indices);
  for (std::size_t id = 0; id < own.size(); ++id) {  // a region may stand behind the modules that run in it
    const ModuleId region = data.tree.modules[id].compiled_region;
    if (region >= 0) modules_[index_of(indices.modules[id])].compiled_region = indices.module(region);
  }
  indices.regions.push_back(kNoRegion);
  for (const auto& region : data.tree.regions) add_region(region, data.run.runs.chosen, indices);
  return indices;
}

void MergedTree::add_module(const Module& module, const Own& own, MergedIndices& indices) {
  const auto [found, is_new] = by_path_.try_emplace(key_of(module), static_cast<ModuleId>(modules_.size()));
  indices.modules.push_back(found->second);
  const auto merged_id = [&](ModuleId id) { return id < 0 ? id : indices.modules[index_of(id)]; };
  if (is_new) {
    Module& added = modules_.emplace_back(module);
    added.parent = merged_id(module.parent);
    added.same_as = merged_id(module.same_as);
    added.compiled_region = -1;
    own_.push_back(own);
    return;
  }
  Module& merged = modules_[index_of(found->second)];
  for (const auto& [of_module, of_own] : kSizes) {
    own_[index_of(found->second)].*of_own = std::max(own_[index_of(found->second)].*of_own, own.*of_own);
  }
  keep_most(merged.peak_memory, module.peak_memory);
  keep_most(merged.kept_memory, module.kept_memory);
  keep_most(merged.output_bytes, module.output_bytes);
  merged.calls_visible = merged.calls_visible && module.calls_visible;
  merged.parameters_read = merged.parameters_read || module.parameters_read;
  merged.inferred = merged.inferred || module.inferred;
  if (merged.input_shapes.empty()) merged.input_shapes = module.input_shapes;
  if (merged.output_shapes.empty()) merged.output_shapes = module.output_shapes;
}

void MergedTree::add_region(const RegionPath& region, std::int64_t chosen_run, MergedIndices& indices) {
  const RegionId parent = indices.regions[static_cast<std::size_t>(region.parent)];
  std::string path =
      (parent == kNoRegion ? "" : region_paths_[static_cast<std::size_t>(parent - 1)] + "\n") + region.name;
  const auto [found, is_new] = region_by_path_.try_emplace(path, static_cast<RegionId>(regions_.size() + 1));
  indices.regions.push_back(found->second);
  if (is_new) {
    regions_.push_back({parent, region.name, 0, {}});
    region_paths_.push_back(std::move(path));
    region_walls_.emplace_back();
  }
  const auto at = static_cast<std::size_t>(found->second - 1);
  regions_[at].calls = saturating_add(regions_[at].calls, region.calls);
  region_walls_[at].add(value_of_run(region.wall_ns, chosen_run));
}

std::vector<RegionPath> MergedTree::regions() const {
  std::vector<RegionPath> regions = regions_;
  for (std::size_t at = 0; at < regions.size(); ++at) {
    if (const auto wall = region_walls_[at].value()) regions[at].wall_ns = {*wall};
  }
  return regions;
}

Tree MergedTree::tree() const { return {modules(), regions()}; }

std::vector<Module> MergedTree::modules() const {
  std::vector<Module> modules = modules_;
  for (std::size_t id = modules.size(); id-- > 0;) {
    for (const auto& [of_module, of_own] : kSizes) modules[id].*of_module = own_[id].*of_own;
  }
  // Children stand behind their parents.
  for (std::size_t id = modules.size(); id-- > 0;) {
    if (modules[id].parent < 0) continue;
    for (const auto& [of_module, of_own] : kSizes)
      modules[index_of(modules[id].parent)].*of_module += modules[id].*of_module;
  }
  return modules;
}

namespace {

void append(std::string& key, std::string_view part) { key.append(part).push_back('\n'); }
void append(std::string& key, std::int64_t part) { append(key, std::to_string(part)); }

void append(std::string& key, const OpShapes& shapes) {
  append(key, shapes.others ? -1 : std::ssize(shapes.tensors));
  for (const auto& shape : shapes.tensors) {
    append(key, std::ssize(shape));
    for (const auto size : shape) append(key, size);
  }
}

void append(std::string& key, const Owner& owner) {
  append(key, owner.module);
  append(key, static_cast<std::int64_t>(owner.phase));
  append(key, owner.region);
}

void append(std::string& key, const std::array<std::int32_t, 3>& extents) {
  for (const auto extent : extents) append(key, extent);
}

template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string key;
  (append(key, parts), ...);
  return key;
}

// The place of `key` in a list, a new one at its end where it is new.
template <class Item>
std::size_t place_of(std::unordered_map<std::string, std::size_t>& places, std::string key, std::vector<Item>& items,
                     const Item& fresh) {
  const auto [found, is_new] = places.try_emplace(std::move(key), items.size());
  if (is_new) items.push_back(fresh);
  return found->second;
}

void add_counters(CounterValues& sum, const CounterValues& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (more[i]) sum[i] = sum[i].value_or(0) + *more[i];
  }
}

// Returns the deviation of both samples together, from their sizes, means and deviations (Chan, Golub and LeVeque,
// 1979).
template <class Kernel>
double deviation_of_both(const Kernel& a, const Kernel& b) {
  const auto count_a = static_cast<double>(a.instances), count_b = static_cast<double>(b.instances);
  if (count_a + count_b < 2) return 0;
  const double apart = static_cast<double>(b.total_ns) / count_b - static_cast<double>(a.total_ns) / count_a;
  const auto squares = [](const Kernel& bucket, double count) {
    return bucket.stddev_ns * bucket.stddev_ns * (count - 1);
  };
  const double all =
      squares(a, count_a) + squares(b, count_b) + apart * apart * count_a * count_b / (count_a + count_b);
  return std::sqrt(all / (count_a + count_b - 1));
}

// A median of all calls cannot be had from two: it is that of the rank where they took longest together.
template <class Kernel>
void add_calls(Kernel& sum, const Kernel& more, std::int64_t& longest) {
  if (sum.instances > 0 && more.instances > 0) sum.stddev_ns = deviation_of_both(sum, more);
  if (more.total_ns > longest) {
    longest = more.total_ns;
    sum.median_ns = more.median_ns;
  }
  sum.min_ns = sum.instances == 0 ? more.min_ns : std::min(sum.min_ns, more.min_ns);
  sum.max_ns = std::max(sum.max_ns, more.max_ns);
  sum.instances = saturating_add(sum.instances, more.instances);
  sum.total_ns = saturating_add(sum.total_ns, more.total_ns);
}

// Returns "12" of "/tmp/torchinductor/ab/cab.py:12": ranks that generate the same code write it into files of their
// own.
std::string_view line_of(std::string_view code) { return code.substr(code.rfind(':') + 1); }

}  // namespace

std::vector<std::int64_t> MergedSums::add(const Profile& data, const MergedIndices& indices) {
  auto buckets = add_counts(data.counts, indices);
  add_times(*data.times, data.run.runs.chosen, indices);
  const auto compiled = add_compiled_kernels(data.times->compiled_kernels, indices);
  add_kernels(data.device->kernels, compiled, indices, buckets);
  add_device(*data.device, indices);
  add_tokens(data.run.token_calls);
  is_first_ = false;
  return buckets;
}

std::vector<std::int64_t> MergedSums::add_counts(const Counts& counts, const MergedIndices& indices) {
  counts_.crossings_known = counts.crossings_known && (is_first_ || counts_.crossings_known);
  for (const auto& [name, calls] : counts.unobserved) {
    auto& sum = counts_.unobserved[name];
    sum = saturating_add(sum, calls);
  }
  peak_known_ = peak_known_ && counts.memory.peak_bytes.has_value();
  keep_most(counts_.memory.peak_bytes, counts.memory.peak_bytes);
  auto& ops = counts_.ops;
  std::vector<std::int64_t> merged;
  merged.reserve(counts.ops.size());
  for (const auto& bucket : counts.ops) {
    OpBucket fresh = bucket;
    fresh.owner = indices.owner(bucket.owner);
    fresh.calls = fresh.link_bytes = 0;
    fresh.work = {};
    fresh.reuse.clear();
    fresh.counted = CountedBytes{0, 0, 0, 0};
    fresh.crossings.clear();
    fresh.time_ns.reset();
    auto key = joined(bucket.op, fresh.owner, static_cast<std::int64_t>(bucket.dtype), bucket.shapes, bucket.costed);
    const std::size_t at = place_of(op_places_, std::move(key), ops, fresh);
    op_times_.resize(ops.size());
    ops[at].calls = saturating_add(ops[at].calls, bucket.calls);
    ops[at].work += bucket.work;
    ops[at].off_device = ops[at].off_device && bucket.off_device;
    ops[at].link_bytes = saturating_add(ops[at].link_bytes, bucket.link_bytes);
    add_reuse(ops[at].reuse, bucket.reuse);
    add_counted(ops[at].counted, bucket.counted);
    add_crossings(ops[at].crossings, bucket.crossings);
    op_times_[at].add(bucket.time_ns);
    merged.push_back(static_cast<std::int64_t>(at));
  }
  return merged;
}

void MergedSums::add_times(const Times& times, std::int64_t chosen_run, const MergedIndices& indices) {
  for (const auto& time : times.modules) {
    MergedTime fresh;
    fresh.time.owner = indices.owner(time.owner);
    MergedTime& sum = times_[place_of(time_places_, joined(fresh.time.owner), times_, fresh)];
    sum.time.calls = saturating_add(sum.time.calls, time.calls);
    sum.self.add(value_of_run(time.self_ns, chosen_run));
    sum.host_self.add(value_of_run(time.host_self_ns, chosen_run));
  }
}

std::unordered_map<std::int64_t, std::int64_t> MergedSums::add_compiled_kernels(
    const std::vector<CompiledKernel>& kernels, const MergedIndices& indices) {
  std::unordered_map<std::int64_t, std::int64_t> merged;
  for (const auto& kernel : kernels) {
    CompiledKernel fresh = kernel;
    fresh.owner = indices.owner(kernel.owner);
    auto key = joined(kernel.name, fresh.owner, line_of(kernel.code), kernel.source, kernel.costed, kernel.id > 0);
    std::set<ModuleId> modules;
    for (auto& part : fresh.parts) {
      part.module = indices.module(part.module);
      modules.insert(part.module);
    }
    for (const auto module : modules) append(key, module);
    append(key, std::string_view());
    for (const auto& op : kernel.ops) append(key, op);
    fresh.instances = fresh.total_ns = fresh.min_ns = fresh.max_ns = fresh.unfused_bytes = 0;
    fresh.work = {};
    const auto at = place_of(compiled_places_, std::move(key), compiled_kernels_, fresh);
    longest_compiled_.resize(compiled_kernels_.size(), -1);
    auto& sum = compiled_kernels_[at];
    if (kernel.id > 0) merged[kernel.id] = sum.id = static_cast<std::int64_t>(at) + 1;
    sum.work += kernel.work;
    sum.unfused_bytes = saturating_add(sum.unfused_bytes, kernel.unfused_bytes);
    add_calls(sum, kernel, longest_compiled_[at]);
  }
  return merged;
}

void MergedSums::add_kernels(const std::vector<KernelBucket>& kernels,
                             const std::unordered_map<std::int64_t, std::int64_t>& compiled,
                             const MergedIndices& indices, const std::vector<std::int64_t>& buckets) {
  for (const auto& kernel : kernels) {
    KernelBucket own = kernel;
    own.owner = indices.owner(kernel.owner);
    const auto known = compiled.find(kernel.compiled);
    own.compiled = known == compiled.end() ? 0 : known->second;
    if (kernel.bucket >= 0) own.bucket = buckets[static_cast<std::size_t>(kernel.bucket)];
    auto key = joined(own.name, static_cast<std::int64_t>(own.kind), static_cast<std::int64_t>(own.from),
                      static_cast<std::int64_t>(own.to), own.grid, own.block, own.owner, own.op, own.bucket,
                      own.compiled, own.in_graph, own.attributed);
    KernelBucket fresh = own;
    fresh.device = 0;  // each rank has its own
    fresh.instances = fresh.total_ns = fresh.min_ns = fresh.max_ns = fresh.bytes = fresh.counted = 0;
    fresh.counters = {};
    const std::size_t at = place_of(kernel_places_, std::move(key), device_.kernels, fresh);
    longest_.resize(device_.kernels.size(), -1);
    auto& sum = device_.kernels[at];
    sum.bytes = saturating_add(sum.bytes, own.bytes);
    sum.counted = saturating_add(sum.counted, own.counted);
    sum.mismatched = sum.mismatched || own.mismatched;
    add_counters(sum.counters, own.counters);
    add_calls(sum, own, longest_[at]);
  }
}

void MergedSums::add_device(const DeviceWork& device, const MergedIndices& indices) {
  auto& timeline = device_.timeline;
  auto& counters = device_.counters;
  if (is_first_) {
    device_.compute_capability = device.compute_capability;
    counters = {device.counters.sources, device.counters.ranges, device.counters.passes, {}};
  }
  const auto add = [](std::int64_t& sum, std::int64_t part) { sum = saturating_add(sum, part); };
  for (const auto& time : device.timeline.modules) {
    const ModuleId module = indices.module(time.module);
    while (std::ssize(timeline.modules) <= module) {
      timeline.modules.push_back({.module = static_cast<ModuleId>(timeline.modules.size())});
    }
    DeviceTime& sum = timeline.modules[index_of(module)];
    add(sum.busy_ns, time.busy_ns);
    add(sum.idle_ns, time.idle_ns);
    add(sum.self_busy_ns, time.self_busy_ns);
  }
  add(timeline.busy_ns, device.timeline.busy_ns);
  add(timeline.idle_before_ns, device.timeline.idle_before_ns);
  add(timeline.idle_after_ns, device.timeline.idle_after_ns);
  // The basis with most of the observer in it.
  timeline.idle_basis = std::max(timeline.idle_basis, device.timeline.idle_basis);
  timeline.observing_ns = std::max(timeline.observing_ns, device.timeline.observing_ns);
  for (const auto& own : device.counters.modules) {
    const ModuleCounters fresh = {indices.owner(own.owner), {}};
    add_counters(counters.modules[place_of(counter_places_, joined(fresh.owner), counters.modules, fresh)].counters,
                 own.counters);
  }
  add(device_.dropped_records, device.dropped_records);
  add(device_.unattributed_kernels, device.unattributed_kernels);
}

void MergedSums::add_tokens(const std::vector<TokenCalls>& tokens) {
  for (const auto& calls : tokens) {
    const TokenCalls fresh = {
        .region = calls.region, .least_context = calls.least_context, .most_context = calls.most_context};
    TokenCalls& sum = tokens_[place_of(token_places_, calls.region, tokens_, fresh)];
    sum.calls = saturating_add(sum.calls, calls.calls);
    sum.sequences = saturating_add(sum.sequences, calls.sequences);
    sum.tokens = saturating_add(sum.tokens, calls.tokens);
    const bool known = sum.most_context >= 0 && calls.most_context >= 0;
    sum.least_context = known ? std::min(sum.least_context, calls.least_context) : -1;
    sum.most_context = known ? std::max(sum.most_context, calls.most_context) : -1;
    sum.cache_bytes = saturating_add(sum.cache_bytes, calls.cache_bytes);
    sum.weight_bytes = saturating_add(sum.weight_bytes, calls.weight_bytes);
  }
}

Counts MergedSums::counts() const {
  Counts counts = counts_;
  for (std::size_t at = 0; at < op_times_.size(); ++at) counts.ops[at].time_ns = op_times_[at].value();
  if (!peak_known_) counts.memory.peak_bytes.reset();
  return counts;
}

Times MergedSums::times() const {
  Times times;
  for (const auto& [time, self, host_self] : times_) {
    ModuleTime& sum = times.modules.emplace_back(time);
    if (const auto ns = self.value()) sum.self_ns = {*ns};
    if (const auto ns = host_self.value()) sum.host_self_ns = {*ns};
  }
  times.compiled_kernels = compiled_kernels_;
  std::ranges::stable_sort(times.compiled_kernels, std::ranges::greater{}, &CompiledKernel::total_ns);
  return times;
}

DeviceWork MergedSums::device() const {
  DeviceWork device = device_;
  std::ranges::stable_sort(device.kernels, std::ranges::greater{}, &KernelBucket::total_ns);
  std::erase_if(device.timeline.modules,
                [](const DeviceTime& time) { return time == DeviceTime{.module = time.module}; });
  return device;
}

}  // namespace roofprof
