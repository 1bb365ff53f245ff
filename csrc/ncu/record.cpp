#include "ncu/record.h"

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "core/note_codes.h"
#include "core/phrases.h"
#include "join/device_launches.h"
#include "ncu/counters.h"

namespace roofprof::ncu {

namespace {

std::int64_t main_device(const Output& output) {
  std::map<std::int64_t, std::int64_t> kernels;
  for (const auto& kernel : output.kernels) ++kernels[kernel.device];
  return std::ranges::max_element(kernels, {}, [](const auto& count) { return count.second; })->first;
}

// No time of a kernel is longer, so that no sum overflows.
constexpr double kLongestNs = 3600e9;

KernelRecord record_of(const CountedKernel& kernel, std::size_t index, std::int64_t begin_ns,
                       const std::optional<double>& time_ns) {
  if (!time_ns || *time_ns > kLongestNs) {
    throw NcuError(
        "it does not have the time of every kernel: let ncu read gpu__time_duration.sum too, or give the trace of the "
        "program, which has times");
  }
  KernelRecord record;
  record.name = kernel.name;
  record.device = record.to_device = static_cast<std::uint32_t>(kernel.device);
  record.stream = static_cast<std::uint32_t>(kernel.stream);
  record.correlation = index + 1;
  record.launch = 1;
  record.start_ns = begin_ns;
  record.end_ns = begin_ns + std::llround(*time_ns);
  record.grid = kernel.grid;
  record.block = kernel.block;
  return record;
}

}  // namespace

RunRecord record_of(const Output& output) {
  RunRecord observed;
  const auto device = main_device(output);
  auto counters = counters_of(output);
  auto of_all = std::move(counters.records);
  counters.records.clear();
  DeviceTrace trace;
  trace.names = output.names;
  std::int64_t end_ns = 1;  // 0 stands for "not known"
  trace.start_ns = end_ns;
  for (std::size_t i = 0; i < output.kernels.size(); ++i) {
    if (output.kernels[i].device != device) continue;
    const auto& values = of_all[i].values;
    trace.records.push_back(
        record_of(output.kernels[i], i, end_ns, values[static_cast<std::size_t>(Counter::time_ns)]));
    end_ns = trace.records.back().end_ns;
    counters.records.push_back({counters.records.size(), values});
  }
  trace.end_ns = end_ns;

  observed.model = "kernels";
  observed.device = "cuda:" + std::to_string(device);
  observed.mode = "block";
  observed.bypass_sought = false;
  observed.imported = Imported{"Nsight Compute, each kernel run by itself"};
  observed.modules.resize(3);
  observed.modules[kModel].type = "kernels";
  observed.modules[kOutside].path = "(outside)";
  observed.modules[kOptimizer].path = "(optimizer)";
  for (auto& module : observed.modules) {
    module.has_forward = module.params_known = false;
  }
  if (!output.device_name.empty()) observed.environment.emplace_back("gpu_device", output.device_name);

  Pass pass;
  Pass::Op bucket;
  bucket.op = kNoOperator;
  bucket.owner = {kOutside};
  bucket.number = 1;
  bucket.costed = false;
  bucket.calls = std::ssize(trace.records);
  bucket.time_ns = 0;
  observed.launches.emplace_back();  // kNoLaunch
  observed.launches.push_back({bucket.key(), bucket.op});
  pass.ops.push_back(std::move(bucket));
  pass.wall_ns = trace.end_ns - trace.start_ns;
  observed.on_device = DeviceFacts{};
  observed.on_device->compute_capability = output.compute_capability;
  observed.on_device->counters = std::move(counters);
  if (const auto others = std::ssize(output.kernels) - std::ssize(trace.records); others > 0) {
    add_note(observed.notes, "counters-of-one-device",
             counted(others, "kernel") + " that ran on other devices than " + observed.device + " " +
                 (others == 1 ? "is" : "are") + " left out");
  }
  add_note(
      observed.notes, "ncu-times",
      "times are those of ncu, which runs each kernel by itself and, unless --cache-control none and "
      "--clock-control none are given, empties the caches before it and holds the clocks down" +
          std::string(output.rounded ? "; values with prefixes are rounded, --print-units base gives all digits" : ""));
  pass.device = std::make_shared<const DeviceTrace>(std::move(trace));
  observed.counting = pass;
  observed.timed.push_back(std::move(pass));
  return observed;
}

}  // namespace roofprof::ncu
