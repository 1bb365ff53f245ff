#include "machine/gpu/measure_gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/add.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numbers>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/phrases.h"
#include "device/nvidia/driver.h"
#include "device/nvidia/nvml.h"
#include "machine/common/bandwidth_curve.h"
#include "machine/common/measurement.h"
#include "machine/gpu/peaks.h"
#include "machine/gpu/target.h"

namespace roofprof {

namespace {

constexpr std::int64_t kWidth = 4;  // bytes of a float
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

constexpr std::array<std::pair<std::string_view, double BandwidthPoint::*>, 5> kTrialMixes = {
    {{"read", &BandwidthPoint::read},
     {"triad", &BandwidthPoint::triad},
     {"copy", &BandwidthPoint::copy},
     {"write", &BandwidthPoint::write},
     {"update", &BandwidthPoint::update}}};

at::TensorOptions floats_on(c10::Device device) { return at::TensorOptions().dtype(at::kFloat).device(device); }

double bytes_of(std::int64_t elements) { return static_cast<double>(elements * kWidth); }

}  // namespace

std::vector<Trial> dram_trials(std::int64_t array_bytes, c10::Device device) {
  const std::int64_t elements = std::max<std::int64_t>(1, array_bytes / kWidth);
  at::Tensor a = at::full({elements}, 1.0, floats_on(device));
  const at::Tensor b = at::full({elements}, 2.0, floats_on(device));
  const at::Tensor c = at::full({elements}, 3.0, floats_on(device));
  at::Tensor total = at::empty({}, floats_on(device));
  return {
      {"copy", 2 * bytes_of(elements), [=]() mutable { a.copy_(b); }},
      {"triad", 3 * bytes_of(elements), [=]() mutable { at::add_out(a, b, c, /*alpha=*/3.0); }},
      {"read", bytes_of(elements), [=]() mutable { at::sum_out(total, b, at::IntArrayRef{0}); }},
      {"write", bytes_of(elements), [=]() mutable { a.fill_(4.0); }},
      {"update", 2 * bytes_of(elements), [=]() mutable { a.mul_(1.0); }},
  };
}

std::vector<Trial> cache_trials(std::int64_t working_set_bytes, std::int64_t multiprocessors, c10::Device device) {
  const std::int64_t elements = std::max<std::int64_t>(4096, working_set_bytes / kWidth);
  const at::Tensor set = at::full({elements}, 1.0, floats_on(device));

  // Rows of half the set that begin at different offsets of the other half, one for each multiprocessor: what runs at
  // one time reads different lines, so that the cache before this one has none of them. On an H200 such rows fetched
  // 0.95 to 1.02 of their bytes from the L2 (sets of 16 and 32 MiB), 512 rows 0.71, as each of its 132
  // multiprocessors read several. Rows begin where a vector load can.
  constexpr std::int64_t kAligned = 4;
  const std::int64_t count = std::max<std::int64_t>(1, multiprocessors);
  const std::int64_t length = elements / 2;
  const std::int64_t shift = (elements - length) / count / kAligned * kAligned;
  const at::Tensor rows = at::as_strided(set, {count, length}, {shift, 1});
  at::Tensor sums = at::empty({count}, floats_on(device));

  // One call of a _foreach op makes few kernels of many passes.
  constexpr std::size_t kPasses = 64;
  const at::Tensor from = set.narrow(0, 0, elements / 2);
  const at::Tensor into = set.narrow(0, elements - elements / 2, elements / 2);
  const std::vector<at::Tensor> sources(kPasses, from);
  const std::vector<at::Tensor> targets(kPasses, into);
  const std::vector<at::Tensor> wholes(kPasses, set);
  const double half = kPasses * bytes_of(elements / 2);
  const double whole = kPasses * bytes_of(elements);
  return {
      {"read", bytes_of(count * length), [=]() mutable { at::sum_out(sums, rows, at::IntArrayRef{1}); }},
      {"copy", 2 * half, [=] { at::_foreach_copy_(targets, sources); }},
      {"triad", 3 * half, [=] { at::_foreach_add_(targets, sources, /*alpha=*/3); }},
      {"write", whole, [=] { at::_foreach_zero_(wholes); }},
      {"update", 2 * whole, [=] { at::_foreach_mul_(wholes, 1.0); }},
  };
}

std::vector<std::int64_t> curve_working_sets(std::int64_t cache_bytes) {
  // Smaller sets read a line again before its first read has ended, and the hardware merges the two reads.
  const double first = static_cast<double>(cache_bytes) / 4;
  std::vector<std::int64_t> sizes;
  double size = first;
  while (std::llround(size) <= 2 * cache_bytes) {
    sizes.push_back(std::llround(size));
    size *= std::numbers::sqrt2;
  }
  return sizes;
}

BandwidthPoint bandwidth_point(std::int64_t working_set_bytes, const std::vector<Rate>& rates) {
  BandwidthPoint point{.working_set_bytes = working_set_bytes};
  for (const auto& [name, rate] : kTrialMixes) {
    const auto& of_mix = *std::ranges::find(rates, name, &Rate::name);
    point.*rate = of_mix.per_second;
    point.spread = std::max(point.spread, of_mix.spread);
  }
  return point;
}

std::vector<Trial> link_trials(std::int64_t bytes, c10::Device device) {
  const at::TensorOptions plain = at::TensorOptions().dtype(at::kByte).device(at::kCPU);
  const std::int64_t count = std::max<std::int64_t>(1, bytes);
  const auto work = static_cast<double>(count);
  const at::Tensor there = at::full({count}, 1, plain.device(device));
  const at::Tensor pageable = at::full({count}, 2, plain);
  std::vector<Trial> trials;
  if (!device.is_cpu()) {
    const at::Tensor pinned = at::empty({count}, plain.pinned_memory(true));
    pinned.fill_(2);
    trials = {{"pinned to device", work, [=] { there.copy_(pinned, /*non_blocking=*/true); }},
              {"device to pinned", work, [=] { pinned.copy_(there, /*non_blocking=*/true); }}};
  }
  trials.push_back({"pageable to device", work, [=] { there.copy_(pageable); }});
  trials.push_back({"device to pageable", work, [=] { pageable.copy_(there); }});
  return trials;
}

namespace {

using Seconds = std::chrono::duration<double>;
constexpr Seconds kForPoint{0.15};  // of the cache's curve
constexpr Seconds kForDram{1.5};
constexpr Seconds kForLink{1.2};
constexpr Seconds kForDtype{1.5};
constexpr Seconds kPause{0.06};
constexpr Seconds kSustained{1};
constexpr Seconds kForConvolutions{20};  // from the start: the whole is to end in about thirty seconds

constexpr std::int64_t kAssumedCache = 128 * kMiB;

class RoofMeasurement {
 public:
  RoofMeasurement(const RoofOptions& options, const std::function<void(std::string_view)>& progress)
      : options_(options),
        device_(options.peaks.device),
        timer_(options.peaks.timer),
        facts_(options.facts),
        progress_(progress) {}

  MeasuredCeilings run() {
    const auto state = nvml_.state(pci());
    const std::string name = facts_ ? facts_->name : state.name.value_or("");
    result_.ceilings.device = name.empty() ? device_.str() : name + ", " + device_.str();
    if (!state.problem.empty()) result_.notes.push_back(state.problem);
    if (state.mig.value_or(false)) {
      result_.notes.emplace_back("the GPU is partitioned (MIG): the roofs are those of this part of it");
    }
    cache();
    dram();
    note_odd_order(result_.ceilings.memory, result_.notes);
    host_link();
    for (const DType dtype :
         {DType::fp32, DType::tf32, DType::fp16, DType::bf16, DType::fp8, DType::int8, DType::fp64}) {
      compute(dtype);
    }
    look_inside();
    note_clocks();
    note_unsteady(result_.ceilings, result_.notes);
    return std::move(result_);
  }

 private:
  std::string pci() const { return facts_ ? facts_->pci_bus_id : std::string(); }
  std::int64_t multiprocessors() const {
    constexpr std::int64_t kAssumed = 128;
    return facts_ ? facts_->sm_count.value_or(kAssumed) : kAssumed;
  }
  void tell(const std::string& what) const {
    if (progress_) progress_("roofs of this machine: " + what);
  }
  void leave_out(const std::string& what, std::int64_t bytes) {
    result_.notes.push_back(what + " was left out: not even " + bytes_text(bytes) + " could be allocated");
  }

  // The cache's part of the curve. DRAM, measured after it, is its end.
  void cache() {
    const auto capacity = facts_ ? facts_->l2_bytes.value_or(0) : 0;
    if (capacity <= 0) {
      result_.notes.emplace_back("the device does not tell the size of its L2 cache, which was left out");
      return;
    }
    tell("L2 bandwidth");
    for (const std::int64_t set : curve_working_sets(capacity)) {
      if (!with_memory(set, set, [&](std::int64_t bytes) {
            points_.push_back(bandwidth_point(
                bytes, measured_rates(cache_trials(bytes, multiprocessors(), device_), timer_, kForPoint)));
          })) {
        leave_out("L2", set);
        return;
      }
    }
  }

  void dram() {
    tell("DRAM bandwidth");
    const std::int64_t cached = facts_ ? facts_->l2_bytes.value_or(kAssumedCache) : kAssumedCache;
    const std::int64_t wanted = std::max(4 * cached, options_.array_bytes);
    const std::int64_t most = std::min(wanted, free_bytes(device_) / 6);  // three arrays, and as much left alone
    if (!with_memory(most, std::min(most, cached), [&](std::int64_t bytes) {
          const std::string cut =
              bytes < 4 * cached ? ", less than 4 times the L2 cache: there was no more memory" : "";
          const std::string arrays = "arrays of " + bytes_text(bytes);
          auto rates = measured_rates(dram_trials(bytes, device_), timer_, kForDram);
          points_.push_back(bandwidth_point(3 * bytes, rates));
          curve(arrays);
          // The level has the rate that devices are compared by; an op has that of its mix, on the curve.
          std::stable_partition(rates.begin(), rates.end(),
                                [](const Rate& rate) { return rate.name != "write" && rate.name != "update"; });
          result_.ceilings.memory.push_back(memory_ceiling("DRAM", 0, rates, arrays + cut));
        })) {
      leave_out("DRAM", std::min(most, cached));
      if (!points_.empty()) result_.notes.emplace_back("without DRAM the L2 is left out, too: it has no step to it");
    }
  }

  // Makes a level of the cache where the curve has a step at its end.
  void curve(const std::string& arrays) {
    double spread = 0;
    std::vector<double> spreads;
    for (const auto& point : points_) spreads.push_back(point.spread);
    std::vector<BandwidthPoint> best = best_of({points_});
    for (std::size_t i = 0; i < best.size(); ++i) best[i].spread = spreads[i];
    for (const double of_point : spreads) spread = std::max(spread, of_point);
    const auto capacity = facts_ ? facts_->l2_bytes.value_or(0) : 0;
    const auto stated = capacity > 0 ? std::vector<StatedCache>{{"L2", capacity}} : std::vector<StatedCache>{};
    for (const Plateau& level : plateaus(best, stated)) {
      if (level.level == "DRAM") continue;
      result_.ceilings.memory.push_back(
          {.level = level.level,
           .bytes_per_second = level.bytes_per_second,
           .capacity_bytes = level.capacity_bytes,
           .provenance = {"measured",
                          level.kernel + " over " + bytes_text(level.from_bytes) + " to " + bytes_text(level.to_bytes) +
                              ", bytes that kernels ask for; the device states " + bytes_text(capacity),
                          local_date(), level.spread}});
    }
    if (capacity > 0 && result_.ceilings.memory.empty()) {
      result_.notes.push_back("L2 is no level: the bandwidth has no step at the " + bytes_text(capacity) +
                              " that the device states");
    }
    result_.ceilings.curve.provenance = {"measured",
                                         "read, triad, copy, write and update in place over " +
                                             bytes_text(best.front().working_set_bytes) + " to " + arrays +
                                             ", made monotone",
                                         local_date(), spread};
    result_.ceilings.curve.points = std::move(best);
  }

  void host_link() {
    tell("host link");
    const std::int64_t most = std::min(options_.link_bytes, free_bytes(device_) / 4);
    if (!with_memory(most, std::min(most, kMiB), [&](std::int64_t bytes) {
          auto rates = measured_rates(link_trials(bytes, device_), timer_, kForLink);
          // Copies of pageable memory pass through a pinned buffer: what they reach is not the link's.
          std::stable_partition(rates.begin(), rates.end(),
                                [](const Rate& rate) { return rate.name.find("pageable") == std::string::npos; });
          result_.ceilings.memory.push_back(memory_ceiling("host link", 0, rates, bytes_text(bytes)));
        })) {
      leave_out("host link", std::min(most, kMiB));
    }
  }

  void compute(DType dtype) {
    const std::string name(name_of(dtype));
    tell(name + " products and convolutions");
    if (facts_ && facts_->compute_major < 8 && (dtype == DType::tf32 || dtype == DType::bf16)) {
      tell(name + " is left out: the GPU's tensor cores do not have it");
      return;
    }
    PeakOptions options = options_.peaks;
    // cuDNN tries many kernels before the first convolution, which takes seconds on a slow GPU.
    options.with_convolution = std::chrono::steady_clock::now() - begin_ < kForConvolutions;
    const auto cores = dtype == DType::fp32 ? core_peak() : std::nullopt;
    if (cores) options.limit = *cores * 1.02;  // the driver may report clocks a little too low
    options.clock_hz = [this] {
      if (const auto reasons = nvml_.throttle_reasons(pci())) held_down_by_.insert(reasons->begin(), reasons->end());
      return nvml_.sm_clock_hz(pci());
    };
    options.power_watts = [this] { return nvml_.power_watts(pci()); };
    ComputePeak peak = measure_gpu_peak(dtype, options);
    if (!peak.left_out.empty()) {
      // No note: a report that needs this roof says itself that it has none.
      tell(name + " is left out: " + peak.left_out);
      return;
    }
    if (cores) peak.method += "; " + share_of_cores(peak.operations_per_second, *cores);
    if (const auto share = share_of_clock(dtype, peak); share && *share < kNearClock) {
      const std::string far = number_text(100 * *share) + "% of what the SMs can do at that clock";
      peak.method += "; " + far + ": its kernels are the limit";
      result_.notes.push_back(name + ": the best product reaches " + far + ", so its kernel is the limit, not the GPU");
    }
    result_.ceilings.compute.push_back({.dtype = dtype,
                                        .operations_per_second = peak.operations_per_second,
                                        .provenance = {"measured", peak.method, local_date(), peak.spread},
                                        .sustained = peak.sustained,
                                        .fastest = FastestWork{peak.shape, {}, {}}});
    again_.push_back(std::move(peak.again));
  }

  // Asks CUPTI, which may slow down what runs after it: so it comes last.
  void look_inside() {
    tell("kernels of the peaks, bytes that the L2 counts");
    std::string why = "nothing here records kernels";
    std::unique_ptr<DeviceCollector> collector;
    try {
      refuse_beside_torchs_profiler();
      if (options_.collector) collector = options_.collector();
    } catch (const CollectorError& error) {
      why = error.what();
    }
    // Asks the question, and returns why it has no answer; empty: it has one.
    const auto ask = [&](const auto& question) -> std::string {
      if (collector == nullptr) return why;
      try {
        question();
        return "";
      } catch (const std::exception& error) {
        return first_line_of(error.what());
      }
    };
    for (std::size_t i = 0; i < again_.size(); ++i) {
      auto& peak = result_.ceilings.compute[i];
      peak.fastest->missing =
          ask([&] { peak.fastest->kernel_name = longest_kernel(*collector, peak.dtype, again_[i]); });
    }
    for (MemoryCeiling& level : result_.ceilings.memory) {
      if (level.level != "L2") continue;
      const auto missing =
          ask([&] { level.counted_bytes_per_second = counted_rate(*collector, level.capacity_bytes); });
      level.provenance.method +=
          "; bytes that the L2 counts: " +
          (missing.empty() ? number_text(level.counted_bytes_per_second / 1e9) + " GB/s" : "n/a because " + missing);
    }
  }

  static std::string longest_kernel(DeviceCollector& collector, DType dtype, const std::function<Trial()>& make) {
    const TorchSettings settings(dtype);
    const Trial trial = make();
    trial.run();
    collector.start_tracing(Recorded::launches);
    try {
      trial.run();
    } catch (...) {
      collector.stop_tracing();
      throw;
    }
    const DeviceTrace trace = collector.stop_tracing();
    const KernelRecord* longest = nullptr;
    const auto duration = [](const KernelRecord& record) { return record.end_ns - record.start_ns; };
    for (const KernelRecord& record : trace.records) {
      if (record.kind != KernelKind::kernel) continue;
      if (longest == nullptr || duration(record) > duration(*longest)) longest = &record;
    }
    if (longest == nullptr) throw CollectorError("no kernel of it was recorded");
    return trace.names.at(longest->name);
  }

  // Counts the L2's own bytes in each trial of the working sets that it holds, in a second call, which finds them
  // there. With the times that were measured before, each has a rate in these bytes. Returns the highest.
  double counted_rate(DeviceCollector& collector, std::int64_t capacity_bytes) const {
    struct Counted {
      Trial trial;
      double calls_per_second;
    };
    std::vector<Counted> counted;
    for (const BandwidthPoint& point : points_) {
      if (point.working_set_bytes > capacity_bytes) continue;
      const auto trials = cache_trials(point.working_set_bytes, multiprocessors(), device_);
      for (const auto& [name, mix] : kTrialMixes) {
        const Trial& trial = *std::ranges::find(trials, name, &Trial::name);
        counted.push_back({trial, point.*mix / trial.work});
      }
    }
    const CounterRequest request{.ranges = CounterRanges::modules,
                                 .expected_launches = std::ssize(counted),
                                 .device = device_.is_cpu() ? std::nullopt : std::optional<int>(device_.index())};
    const CounterTrace trace = collector.count(request, [&](LaunchMarker* marker) {
      for (std::size_t i = 0; i < counted.size(); ++i) {
        counted[i].trial.run();
        if (marker != nullptr) marker->push(i + 1, LaunchLevel::module);
        counted[i].trial.run();
        if (marker != nullptr) marker->pop(LaunchLevel::module);
      }
    });
    double highest = 0;
    for (const CounterRecord& record : trace.records) {
      const auto bytes = record.values[static_cast<std::size_t>(Counter::l2_bytes)];
      if (!bytes || record.range == kNoLaunch || record.range > counted.size()) continue;
      highest = std::max(highest, *bytes * counted[record.range - 1].calls_per_second);
    }
    if (highest > 0) return highest;
    for (const CounterSource& source : trace.sources) {
      if (source.counter == Counter::l2_bytes && !source.missing.empty()) throw CollectorError(source.missing);
    }
    throw CollectorError("the counter has no value");
  }

  static constexpr double kNearClock = 0.75;
  // Returns the peak's share of what all SMs can do at the clock of the best burst; empty where that is not known.
  std::optional<double> share_of_clock(DType dtype, const ComputePeak& peak) const {
    if (!facts_ || !facts_->sm_count || !peak.clock_hz) return std::nullopt;
    const auto of_one = tensor_operations_per_clock(dtype, facts_->compute_major, facts_->compute_minor);
    if (!of_one) return std::nullopt;
    return peak.operations_per_second / (static_cast<double>(*facts_->sm_count) * *peak.clock_hz * *of_one);
  }

  // Returns the peak of fp32 at the highest clock; tensor cores have no part in it.
  std::optional<double> core_peak() const {
    if (!facts_ || !facts_->sm_count || !facts_->clock_hz) return std::nullopt;
    return cuda::cuda_core_fp32_peak(*facts_->sm_count, *facts_->clock_hz, facts_->compute_major,
                                     facts_->compute_minor);
  }
  // NOLINTBEGIN(bugprone-unchecked-optional-access): core_peak() has a value only with them
  std::string share_of_cores(double rate, double cores) const {
    return number_text(100 * rate / cores) + "% of the CUDA cores' " + number_text(cores / 1e12) +
           " TFLOP/s, computed for " + std::to_string(*facts_->sm_count) + " SMs at their highest clock, " +
           number_text(static_cast<double>(*facts_->clock_hz) / 1e6) + " MHz";
  }
  // NOLINTEND(bugprone-unchecked-optional-access)

  void note_clocks() {
    std::string reasons;
    for (const auto& reason : held_down_by_) {
      if (reason != "idle") add_item(reasons, reason);
    }
    if (!reasons.empty()) {
      result_.notes.push_back("while products were measured the GPU's clocks were held down by: " + reasons);
    }
  }

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const RoofOptions& options_;
  c10::Device device_;
  const Timer& timer_;
  const std::optional<cuda::NvidiaDevice>& facts_;
  const std::function<void(std::string_view)>& progress_;
  cuda::Nvml nvml_;
  std::set<std::string> held_down_by_;
  std::vector<BandwidthPoint> points_;
  std::vector<std::function<Trial()>> again_;  // the work of each peak
  MeasuredCeilings result_;
};

}  // namespace

MeasuredCeilings measure_roofs(const RoofOptions& options, const std::function<void(std::string_view)>& progress) {
  return RoofMeasurement(options, progress).run();
}

MemoryCeiling memory_ceiling(const std::string& level, std::int64_t capacity_bytes, const std::vector<Rate>& rates,
                             const std::string& over) {
  const Rate& best = rates.front();
  std::string others;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    add_item(others, rates[i].name + " " + number_text(rates[i].per_second / 1e9));
  }
  std::string method = best.name + " over " + over + ", best of " + std::to_string(best.repeats);
  if (!others.empty()) method += " (" + others + " GB/s)";
  return {.level = level,
          .bytes_per_second = best.per_second,
          .capacity_bytes = capacity_bytes,
          .provenance = {"measured", std::move(method), local_date(), best.spread}};
}

bool with_memory(std::int64_t size, std::int64_t least, const std::function<void(std::int64_t)>& body) {
  for (; size >= least && size > 0; size /= 2) {
    try {
      body(size);
      return true;
    } catch (const c10::OutOfMemoryError&) {  // half of it may fit
    }
  }
  return false;
}

MeasuredCeilings measure_gpu(const std::string& device, const std::function<void(std::string_view)>& progress) {
  const c10::Device target = usable_gpu(device);
  try {
    const c10::DeviceGuard current(target);
    synchronize(target);
    const MemoryGivenBack memory(target);
    PeakOptions peaks{
        .device = target, .timer = timer_of(target), .budget = kForDtype, .pause = kPause, .sustained_for = kSustained};
    const auto facts = gpu_facts(target);
    // A row of tiles for each SM, so that none has nothing to do in the end.
    if (facts && facts->sm_count) peaks.shapes.insert(peaks.shapes.end() - 1, {128 * *facts->sm_count, 4096, 4096});
    return measure_roofs(
        {.peaks = std::move(peaks), .facts = facts, .collector = [&] { return hardware_collector(target.str()); }},
        progress);
  } catch (const c10::Error& error) {
    throw InvalidArgument("the roofs of \"" + device +
                          "\" cannot be measured: " + first_line_of(error.what_without_backtrace()));
  }
}

}  // namespace roofprof
