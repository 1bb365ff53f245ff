#include "analysis/predict/prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/predict/launch_clocks.h"
#include "analysis/predict/op_time.h"
#include "analysis/predict/parallel.h"
#include "analysis/predict/scaling.h"
#include "core/deviation.h"
#include "core/note_codes.h"
#include "core/phrases.h"
#include "core/roofs.h"

namespace roofprof {

namespace {

constexpr double kNanoseconds = 1e9;

void check(const Profile& data, const PredictionOptions& options) {
  if (data.origin.merged() != nullptr) {
    throw InvalidArgument("a merged report has the sums of several ranks: predict from the report of one rank");
  }
  const auto does_something = [](const OpBucket& bucket) { return bucket.work.bytes() > 0 || bucket.work.flops() > 0; };
  if (std::ranges::none_of(data.counts.ops, does_something)) {
    throw InvalidArgument("the report has no ops with work to predict the time of: nothing was counted in it");
  }
  if (options.ranks < 1) {
    throw InvalidArgument("ranks must be 1 or more, not " + std::to_string(options.ranks));
  }
  for (const auto& [name, factor] : {std::pair{"bandwidth", options.bandwidth}, std::pair{"peak", options.peak}}) {
    if (!(factor > 0) || !std::isfinite(factor)) {
      throw InvalidArgument(std::string(name) + " is a factor above 0, not " + short_text(factor, 6));
    }
  }
  const double host = options.host_seconds.value_or(0);
  if (!(host >= 0) || !std::isfinite(host)) {
    throw InvalidArgument("host is the seconds in which an op is launched, 0 or more, not " + short_text(host, 6));
  }
}

void check_mode(const PredictionOptions& options, const TargetDevice& device) {
  if (options.mode == LaunchMode::graph && !device.is_gpu) {
    throw InvalidArgument("the mode 'graph' is of GPUs, and '" + shown(device.ceilings->device) +
                          "' is a CPU: predict 'eager' or 'compiled'");
  }
}

// Predictions are made of what was counted. These functions drop what the run left in addition to its work, because
// that says nothing about another device.

RunInfo without_times(RunInfo run) {
  run.device.clear();
  run.runs = {};
  std::erase_if(run.environment, [](const auto& fact) { return fact.first != fact_keys::kTorch; });
  return run;
}

Tree without_times(Tree tree) {
  for (auto& region : tree.regions) region.wall_ns.clear();
  for (auto& module : tree.modules) module.compiled_region = -1;
  return tree;
}

Counts without_times(Counts counts) {
  std::erase_if(counts.ops, [](const OpBucket& op) { return op.costed && is_time_of_region(op.op); });
  for (auto& bucket : counts.ops) {
    bucket.reuse.clear();  // times are predicted by footprints
    bucket.counted.reset();
    bucket.off_device = false;
  }
  counts.memory.timeline = {};
  return counts;
}

Times calls_alone(const Times& times) {
  Times calls;
  for (const auto& time : times.modules) calls.modules.push_back({time.owner, time.calls, {}, {}});
  return calls;
}

Profile counts_of(Profile data) {
  Profile counts;
  counts.run = without_times(std::move(data.run));
  counts.tree = without_times(std::move(data.tree));
  counts.counts = without_times(std::move(data.counts));
  counts.times = calls_alone(*data.times);
  counts.origin = std::move(data.origin);
  counts.notes = std::move(data.notes);
  std::erase_if(counts.notes, [](const Note& note) { return is_of_times(note.code); });
  return counts;
}

std::string factor_text(double value) { return short_text(value, 6); }

// Sets the times of regions: the sums over all ops in the region and in regions inside it.
void set_region_times(Profile& data) {
  std::vector<std::int64_t> sums(data.tree.regions.size() + 1);
  for (const auto& bucket : data.counts.ops) {
    auto& sum = sums[static_cast<std::size_t>(bucket.owner.region)];
    sum = saturating_add(sum, bucket.time_ns.value_or(0));
  }
  for (std::size_t id = data.tree.regions.size(); id > 0; --id) {  // regions stand behind those around them
    auto& outer = sums[static_cast<std::size_t>(data.tree.regions[id - 1].parent)];
    outer = saturating_add(outer, sums[id]);
    data.tree.regions[id - 1].wall_ns = {sums[id]};
  }
}

std::int64_t rounded(double value) {
  return value < static_cast<double>(kSaturated) ? std::llround(value) : kSaturated;
}

// Sets what the op is predicted to compute and to move, and says which of its bytes the prediction finds in the last
// cache: by footprints alone the weights of any model would be in it.
void set_work(OpBucket& bucket, const OpFeatures& op, const TargetDevice& device) {
  Work& work = bucket.work;
  if (const double share = executed_share(op); share < 1) {
    for (auto& operations : work.operations) operations = rounded(share * static_cast<double>(operations));
  }
  if (op.in_chain || op.is_free) {
    work.read_bytes = op.is_free ? 0 : rounded(op.calls * op.read_bytes);
    work.write_bytes = op.is_free ? 0 : rounded(op.calls * op.write_bytes);
    work.updated_bytes = std::min({work.updated_bytes, work.read_bytes, work.write_bytes});
  }
  if (!device.is_gpu || device.cache_capacity <= 0 || work.bytes() == 0) return;
  const auto cached = [found = 1 - missed_share(op, device)](std::int64_t bytes) {
    return rounded(found * static_cast<double>(bytes));
  };
  const auto* cache = last_cache(*device.ceilings);  // its roof may have a measured capacity
  const ReusedBytes near{cache != nullptr ? cache->capacity_bytes : rounded(device.cache_capacity),
                         cached(work.read_bytes), cached(work.write_bytes), cached(work.updated_bytes)};
  bucket.reuse = {near,
                  {kSaturated, work.read_bytes - near.read_bytes, work.write_bytes - near.write_bytes,
                   work.updated_bytes - near.updated_bytes}};
}

// Returns the next whole number, or the one below if the value exceeds that by rounding alone.
double up(double value) { return std::ceil(value - 1e-6); }

// Sets each bucket's time, which includes that in which the device waits for its launch.
void set_op_times(Profile& data, const std::vector<OpFeatures>& features, const TargetDevice& device,
                  LaunchClocks clocks) {
  for (std::size_t i = 0; i < data.counts.ops.size(); ++i) {
    auto& bucket = data.counts.ops[i];
    bucket.time_ns.reset();
    bucket.time_low_ns.reset();
    bucket.time_high_ns.reset();
    bucket.floor_ns = 0;
    if (!features[i].is_known) continue;
    const double kernel = kernel_seconds(features[i], device);
    const auto margins = margins_of(features[i], kernel, device);
    const double waits = clocks.launch(features[i], kernel);
    const double seconds = features[i].calls * kernel + waits;
    // Up, so that no time is below its lower bound, which is rounded.
    bucket.time_ns = rounded(up(seconds * kNanoseconds));
    bucket.time_low_ns = rounded(up(seconds * kNanoseconds * margins.low));
    bucket.time_high_ns = rounded(up(seconds * kNanoseconds * margins.high));
    bucket.floor_ns = rounded((features[i].calls * floor_seconds(features[i], device) + waits) * kNanoseconds);
    set_work(bucket, features[i], device);
  }
}

// Sets the time of each module as the sum over its buckets.
void set_sums(Profile& data) {
  std::map<Owner, std::int64_t> own;
  std::int64_t total = 0;
  for (const auto& bucket : data.counts.ops) {
    if (!bucket.time_ns) continue;
    auto& sum = own[bucket.owner];
    sum = saturating_add(sum, *bucket.time_ns);
    total = saturating_add(total, *bucket.time_ns);
  }
  auto& times = data.times.make().modules;
  for (auto& time : times) {
    const auto found = own.find(time.owner);
    time.self_ns = {found == own.end() ? 0 : found->second};
    if (found != own.end()) own.erase(found);
  }
  for (const auto& [owner, sum] : own) times.push_back({owner, 0, {sum}, {}});
  set_region_times(data);
  data.run.runs.total_ns = {total};
  data.run.runs.chosen = 0;
}

// Their steps wait for each other.
void note_recurrent(Profile& data) {
  std::vector<std::string> ops;
  for (const auto& bucket : data.counts.ops) {
    const auto name = plain_name(bucket.op);
    const bool recurrent = name == "lstm" || name == "gru" || name == "rnn_tanh" || name == "rnn_relu";
    if (recurrent && std::ranges::find(ops, bucket.op) == ops.end()) ops.push_back(bucket.op);
  }
  if (ops.empty()) return;
  add_note(data.notes, "prediction-doubtful",
           listed(ops) + " is predicted as if its steps could run at once: it takes longer where they are many", ops);
}

// Notes the products whose type has no peak.
void note_peaks(Profile& data, const TargetDevice& device) {
  std::array<bool, kDTypeCount> seen{};
  for (const auto& bucket : data.counts.ops) {
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      if (bucket.work.macs <= 0 || bucket.work.operations[i] <= 0 || device.peak[i] > 0 ||
          std::exchange(seen[i], true)) {
        continue;
      }
      add_note(data.notes, "prediction-peaks",
               "no peak of " + std::string(kDTypeNames[i]) + " is published of " + device.ceilings->device +
                   ": that of the type that takes its place is used");
    }
  }
  for (const auto& remark : device.remarks) add_note(data.notes, "prediction-peaks", remark);
}

// `weights`: bytes of parameters and buffers that are kept.
void note_memory(Profile& data, const Ceilings& ceilings, std::int64_t weights) {
  const std::int64_t needed = saturating_add(weights, data.counts.memory.peak_bytes.value_or(0));
  const std::int64_t memory = ceilings.facts.memory_bytes;
  if (memory <= 0 || needed <= memory) return;
  const auto gigabytes = [](std::int64_t bytes) { return fixed_text(static_cast<double>(bytes) / 1e9, 1) + " GB"; };
  add_note(
      data.notes, "prediction-memory",
      "it does not fit: weights of " + gigabytes(weights) +
          (data.counts.memory.peak_bytes ? " and activations of " + gigabytes(*data.counts.memory.peak_bytes) : "") +
          " are more than the " + gigabytes(memory) + " of " + ceilings.device);
}

std::int64_t weight_bytes_of(const Profile& data) {
  const Module& model = data.tree.modules.at(index_of(kModel));
  return model.param_bytes + model.buffer_bytes;
}

// Returns what ranks do, and divides the work that they share; empty for one rank.
std::optional<RankPlan> planned_ranks(Profile& counted, const PredictionOptions& options, const Predicted& known,
                                      std::int64_t steps) {
  if (options.ranks == 1) return std::nullopt;
  counted.counts.memory.alive.clear();  // ranks may share it
  const Module& model = counted.tree.modules.at(index_of(kModel));
  constexpr double kOfFp32 = 4;  // under autocast parameters and their gradients are in fp32
  double bytes =
      model.params > 0 ? static_cast<double>(model.param_bytes) / static_cast<double>(model.params) : kOfFp32;
  if (options.precision) bytes = bytes_of(*options.precision).value_or(bytes);
  if (known.autocast) bytes = std::max(bytes, kOfFp32);
  return plan_ranks(counted, options, bytes, steps);
}

std::int64_t steps_of(const Profile& data) { return std::max<std::int64_t>(data.run.runs.steps, 1); }

}  // namespace

Profile prepared(const Profile& data, const PredictionOptions& options) {
  check(data, options);
  Profile changed = data;
  if (options.precision) set_precision(changed, *options.precision);
  if (options.batch) set_batch(changed, *options.batch);
  return changed;
}

Predicted options_of(const Profile& data, const PredictionOptions& options, const FeatureOptions& how) {
  const auto is_narrow = [](const OpBucket& bucket) {
    return bucket.work.macs > 0 && (bucket.dtype == DType::fp16 || bucket.dtype == DType::bf16);
  };
  const auto narrow = std::ranges::find_if(data.counts.ops, is_narrow);
  Predicted known{.precision = options.precision,
                  .batch = options.batch,
                  .counted_under_autocast = counted_under_autocast(data),
                  .channels_last = options.channels_last,
                  .mode = options.mode,
                  .host_seconds = options.mode == LaunchMode::eager ? options.host_seconds : std::nullopt,
                  .bandwidth = options.bandwidth,
                  .peak = options.peak,
                  .ranks = options.ranks,
                  .parallel = options.ranks > 1 ? options.parallel : Parallel::ddp};
  if (narrow != data.counts.ops.end() && how.autocast) known.autocast = narrow->dtype;
  return known;
}

Profile predicted(const Profile& data, const Ceilings& ceilings, const PredictionOptions& options,
                  const PredictionParameters& parameters) {
  Profile counted = prepared(data, options);
  const auto device = target_device(ceilings, parameters, options.bandwidth, options.peak);
  check_mode(options, device);
  const auto how = feature_options(counted, options, device.is_gpu);
  const auto known = options_of(counted, options, how);
  const auto steps = steps_of(counted);
  const auto plan = planned_ranks(counted, options, known, steps);
  const auto features = features_of(counted, how);
  Profile result = counts_of(std::move(counted));
  result.origin.kind = known;
  result.run.device = ceilings.device;
  result.roofs = ceilings;
  if (const auto cache = estimated_cache(ceilings)) {
    result.roofs.memory.insert(result.roofs.memory.begin(), *cache);
  }
  const auto multiply = [](double& rate, Provenance& provenance, double factor) {
    rate *= factor;
    if (factor != 1)
      provenance = {"given", factor_text(factor) + " x " + provenance.source + ": " + provenance.method, "", {}};
  };
  for (auto& peak : result.roofs.compute) multiply(peak.operations_per_second, peak.provenance, options.peak);
  for (auto& level : result.roofs.memory) {
    if (level.level != kHostLink) multiply(level.bytes_per_second, level.provenance, options.bandwidth);
  }
  for (auto& point : result.roofs.curve.points) {
    for (auto* rate : {&point.read, &point.triad, &point.copy, &point.write, &point.update}) *rate *= options.bandwidth;
  }
  result.times.make().common_error = parameters.common_error;
  set_op_times(result, features, device, LaunchClocks(options, parameters.gpu.host, device.is_gpu));
  if (plan) add_collectives(result, *plan, ceilings, options, parameters, steps);
  set_sums(result);
  add_note(result.notes, "predicted", "times are predicted, none was measured; 80% take between low and high");
  note_peaks(result, device);
  note_recurrent(result);
  note_memory(result, ceilings, plan ? plan->weight_bytes : weight_bytes_of(result));
  return result;
}

namespace {

// Returns the seconds of the kernels of each op, all its calls together.
std::vector<double> seconds_of(const std::vector<OpFeatures>& ops, const TargetDevice& device) {
  std::vector<double> seconds;
  seconds.reserve(ops.size());
  for (const auto& op : ops) seconds.push_back(op.calls * kernel_seconds(op, device));
  return seconds;
}

}  // namespace

Predictor::Predictor(const Profile& data, const PredictionOptions& options) : options_(options) {
  Profile changed = prepared(data, options);
  const auto how = feature_options(changed, options, true);
  const auto known = options_of(changed, options, how);
  steps_ = steps_of(data);
  plan_ = planned_ranks(changed, options, known, steps_);
  on_gpu_ = sorted_out(features_of(changed, how));
  on_cpu_ = sorted_out(features_of(changed, feature_options(changed, options, false)));
  batch_ = batch_of(changed);
  weight_bytes_ = plan_ ? plan_->weight_bytes : weight_bytes_of(changed);
  activation_bytes_ = changed.counts.memory.peak_bytes;
  words_ = words_of(known);
}

Predictor::Ops Predictor::sorted_out(std::vector<OpFeatures> all) {
  Ops ops;
  ops.all = std::move(all);
  std::unordered_multimap<std::size_t, std::size_t> seen;  // places by hash
  for (const auto& op : ops.all) {
    auto hash = static_cast<std::size_t>(op.op);
    for (const double size : {op.read_bytes, op.write_bytes, op.macs, op.calls}) {
      constexpr std::size_t kFactor = 1'000'003;
      hash = hash * kFactor ^ std::hash<double>()(size);
    }
    const auto [begin, end] = seen.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& place) { return ops.different[place.second] == op; });
    ops.places.push_back(same == end ? ops.different.size() : same->second);
    if (same != end) continue;
    seen.emplace(hash, ops.different.size());
    ops.different.push_back(op);
  }
  return ops;
}

const Predictor::Ops& Predictor::ops_for(const TargetDevice& device) const { return device.is_gpu ? on_gpu_ : on_cpu_; }

std::array<double, kOpClassCount> Predictor::class_seconds(const Ceilings& ceilings,
                                                           const PredictionParameters& parameters) const {
  const auto device = target_device(ceilings, parameters, options_.bandwidth, options_.peak);
  std::array<double, kOpClassCount> seconds{};
  const auto& ops = ops_for(device);
  const auto of_ops = seconds_of(ops.different, device);
  for (const auto place : ops.places) seconds[static_cast<std::size_t>(ops.different[place].op)] += of_ops[place];
  return seconds;
}

std::vector<std::string_view> Predictor::op_classes() const {
  std::vector<std::string_view> classes;
  for (const auto& op : on_gpu_.all) {
    const bool takes_time = op.is_known && !op.is_free;
    classes.push_back(takes_time ? kOpClassNames[static_cast<std::size_t>(op.op)] : std::string_view());
  }
  return classes;
}

std::vector<double> Predictor::op_seconds(const Ceilings& ceilings, const PredictionParameters& parameters) const {
  const auto device = target_device(ceilings, parameters, options_.bandwidth, options_.peak);
  const auto& ops = ops_for(device);
  const auto of_different = seconds_of(ops.different, device);
  std::vector<double> seconds;
  seconds.reserve(ops.places.size());
  for (const auto place : ops.places) seconds.push_back(of_different[place]);
  return seconds;
}

std::vector<Margins> Predictor::op_margins(const Ceilings& ceilings, const PredictionParameters& parameters) const {
  const auto device = target_device(ceilings, parameters, options_.bandwidth, options_.peak);
  const auto& ops = ops_for(device);
  std::vector<Margins> margins;
  for (const auto place : ops.places) {
    const auto& op = ops.different[place];
    margins.push_back(margins_of(op, kernel_seconds(op, device), device));
  }
  return margins;
}

PredictedTotal Predictor::total(const Ceilings& ceilings, const PredictionParameters& parameters) const {
  const auto device = target_device(ceilings, parameters, options_.bandwidth, options_.peak);
  check_mode(options_, device);
  LaunchClocks clocks(options_, parameters.gpu.host, device.is_gpu);
  PredictedTotal total;
  const auto steps = static_cast<double>(steps_);
  struct Kernel {
    double seconds;
    Margins margins;
    bool compute_bound;
  };
  const auto& features = ops_for(device);
  std::vector<Kernel> kernels;
  kernels.reserve(features.different.size());
  for (const auto& op : features.different) {
    const double kernel = kernel_seconds(op, device);
    kernels.push_back({kernel, margins_of(op, kernel, device), is_compute_bound(op, device)});
  }
  std::vector<double> ops;  // of a step
  Deviation below;
  Deviation above;
  for (std::size_t i = 0; i < features.all.size(); ++i) {
    const auto& op = features.all[i];
    const auto& [kernel, margins, compute_bound] = kernels[features.places[i]];
    const double seconds = op.calls * kernel + clocks.launch(op, kernel);
    total.seconds += seconds;
    if (plan_) ops.push_back(seconds / steps);
    below.add(seconds * (1 - margins.low));
    above.add(seconds * (margins.high - 1));
    if (compute_bound) total.compute_bound += seconds;
  }
  if (plan_) {
    for (const auto& times : collective_times(*plan_, ops, options_.ranks, ceilings, parameters)) {
      total.seconds += times.exposed * steps;
      below.add((times.exposed - times.low) * steps);
      above.add((times.high - times.exposed) * steps);
    }
  }
  total.low = total.seconds - below.of_sum(parameters.common_error);
  total.high = total.seconds + above.of_sum(parameters.common_error);
  return total;
}

}  // namespace roofprof
