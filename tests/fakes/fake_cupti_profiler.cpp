// A simulated libcupti.so.13: the range profiler, for one chip. It refuses any order of calls but the documented one,
// ranges inside each other and ranges of one name.
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fake_control.h"

struct CUpti_Profiler_Host_Object {
  std::vector<std::string> metrics;
};

namespace {

// What was counted of kernels, by metric; others are 0.
using Counts = std::map<std::string, double, std::less<>>;

struct Range {
  std::string name;
  std::uint64_t passes = 0;  // in which there was such a range
  Counts counts;
};

enum class Step { enabled, image_ready, configured, started, stopped, submitted, decoded };

std::vector<const char*>& base_metrics() {
  static std::vector<const char*> all = {
#define SASS(kind) "smsp__sass_thread_inst_executed_op_" kind "_pred_on"
#define TENSOR(type) "sm__ops_path_tensor_src_" type
      "lts__t_bytes",
      "l1tex__t_bytes",
      "gpu__time_duration",
      "dram__bytes",
      "dram__bytes_read",
      "dram__bytes_write",
      TENSOR("fp16"),
      TENSOR("bf16_dst_fp32"),
      TENSOR("tf32_dst_fp32"),
      TENSOR("fp8"),
      TENSOR("int8"),
      TENSOR("fp64"),
      SASS("hadd"),
      SASS("hmul"),
      SASS("hfma"),
      SASS("fadd"),
      SASS("fmul"),
      SASS("ffma"),
      SASS("dadd"),
      SASS("dmul"),
      SASS("dfma")};
  return all;
}

// A pass holds all memory counters and one tensor type; fp16 and int8 need two by themselves; SASS a pass more.
std::uint64_t passes_of(const std::vector<std::string>& metrics) {
  std::uint64_t hardware = 0;
  std::uint64_t tensor = 0;
  std::uint64_t sass = 0;
  for (const std::string& metric : metrics) {
    if (metric.starts_with("smsp__sass")) {
      sass = 1;
    } else if (metric.starts_with("sm__ops_path_tensor")) {
      tensor += metric.ends_with("_fp16.sum") || metric.ends_with("_int8.sum") ? 2 : 1;
    } else {
      hardware = 1;
    }
  }
  return sass + std::max(hardware, tensor);
}

}  // namespace

// There is at most one.
struct CUpti_RangeProfiler_Object {
  std::size_t device = 0;
  Step step = Step::enabled;
  std::uint64_t passes = 0;  // that the configuration needs
  std::uint64_t pass = 0;
  bool kernels = true;
  bool pushes = false;  // ranges that the client names
  std::size_t rooms = 0;
  std::size_t dropped = 0;
  std::size_t ranges_in_pass = 0;
  std::set<std::string> names_in_pass;
  std::unique_ptr<Range> open;
};

namespace {

std::mutex mutex;
std::unique_ptr<CUpti_RangeProfiler_Object> object;
std::vector<Range> ranges;  // of the session; its images hold nothing
int initialized = 0;

// A range has ended: it gets a room, or the one that it had in an earlier pass.
void keep(Range range) {
  auto found = std::ranges::find(ranges, range.name, &Range::name);
  if (++object->ranges_in_pass > object->rooms || (found == ranges.end() && ranges.size() == object->rooms)) {
    ++object->dropped;
    return;
  }
  if (found == ranges.end()) found = ranges.insert(found, std::move(range));
  found->passes += object->kernels ? object->passes : 1;  // kernels are replayed there and then
}

void add(const fake::Event& ran, Range& range) {
  const FakeLaunch& launch = ran.launched;
  const Counts counts = {{"dram__bytes.sum", launch.dram_read_bytes + launch.dram_write_bytes},
                         {"dram__bytes_read.sum", launch.dram_read_bytes},
                         {"dram__bytes_write.sum", launch.dram_write_bytes},
                         {"lts__t_bytes.sum", launch.l2_bytes},
                         {"l1tex__t_bytes.sum", launch.l1_bytes},
                         {"gpu__time_duration.sum", static_cast<double>(ran.end_ns - ran.start_ns)},
                         {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", launch.flops / 2},
                         {"sm__ops_path_tensor_src_bf16_dst_fp32.sum", static_cast<double>(fake_get("tensor_flops"))}};
  for (const auto& [metric, value] : counts) range.counts[metric] += value;
}

void on_event(const fake::Event& event) {
  if (event.kind != fake::Event::launch) return;
  const std::lock_guard lock(mutex);
  if (!object || object->step != Step::started) return;
  if (event.launched.kind != FAKE_KERNEL || event.launched.device != object->device) return;
  if (!object->kernels) {
    if (object->open) add(event, *object->open);
  } else if (object->open || fake_get("auto_range_needs_push") == 0) {
    Range range;
    range.name = std::to_string(object->ranges_in_pass);
    add(event, range);
    keep(std::move(range));
  }
}

bool is_ours(const CUpti_RangeProfiler_Object* other) { return object && object.get() == other; }
bool is(Step step) { return object->step == step; }

}  // namespace

// A function of the profiler's: its parameters have the size of 13.0, as a larger struct of later headers is refused.
// PROFILER_OF: of the one object.
#define PROFILER(name, Params, size, ...)                                                               \
  CUptiResult name(Params* params) {                                                                    \
    FAKE(CUptiResult, name);                                                                            \
    const std::lock_guard lock(mutex);                                                                  \
    if (params->structSize != (size) || params->pPriv != nullptr) return CUPTI_ERROR_INVALID_PARAMETER; \
    __VA_ARGS__                                                                                         \
    return CUPTI_SUCCESS;                                                                               \
  }
#define PROFILER_OF(name, Params, size, ...)                                          \
  PROFILER(name, Params, size, {                                                      \
    if (!is_ours(params->pRangeProfilerObject)) return CUPTI_ERROR_INVALID_PARAMETER; \
    __VA_ARGS__                                                                       \
  })
#define REQUIRE(condition, error) \
  if (!(condition)) return CUPTI_ERROR_##error

extern "C" {

// ---- the host half

PROFILER(cuptiProfilerHostInitialize, CUpti_Profiler_Host_Initialize_Params, 48, {
  REQUIRE(std::string_view(params->pChipName) == "GH100", INVALID_CHIP_NAME);
  params->pHostObject = new CUpti_Profiler_Host_Object;
  fake::live("host_object", +1);
})
PROFILER(cuptiProfilerHostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params, 24, {
  delete params->pHostObject;
  fake::live("host_object", -1);
})
PROFILER(cuptiProfilerHostGetBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params, 48, {
  REQUIRE(params->metricType == CUPTI_METRIC_TYPE_COUNTER, INVALID_PARAMETER);
  params->ppMetricNames = base_metrics().data();
  params->numMetrics = base_metrics().size();
})
PROFILER(cuptiProfilerHostConfigAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, 40, {
  for (std::size_t i = 0; i < params->numMetrics; ++i) {
    const std::string metric = params->ppMetricNames[i];
    REQUIRE(metric.find(fake_get_text("refused_metric")) == std::string::npos, INVALID_PARAMETER);
    params->pHostObject->metrics.push_back(metric);
  }
})
PROFILER(cuptiProfilerHostGetConfigImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params, 32,
         { params->configImageSize = sizeof(std::uint64_t); })
PROFILER(cuptiProfilerHostGetConfigImage, CUpti_Profiler_Host_GetConfigImage_Params, 40, {
  const std::uint64_t passes = passes_of(params->pHostObject->metrics);
  std::memcpy(params->pConfigImage, &passes, sizeof passes);
})
PROFILER(cuptiProfilerHostGetNumOfPasses, CUpti_Profiler_Host_GetNumOfPasses_Params, 40,
         { std::memcpy(&params->numOfPasses, params->pConfigImage, sizeof(std::uint64_t)); })
// A range that was not there in every pass has no values.
PROFILER(cuptiProfilerHostEvaluateToGpuValues, CUpti_Profiler_Host_EvaluateToGpuValues_Params, 72, {
  REQUIRE(object && params->rangeIndex < ranges.size(), INVALID_PARAMETER);
  const Range& range = ranges[params->rangeIndex];
  for (std::size_t i = 0; i < params->numMetrics; ++i) {
    const auto counted = range.counts.find(std::string_view(params->ppMetricNames[i]));
    const double value = counted != range.counts.end() ? counted->second : 0;
    params->pMetricValues[i] = range.passes == object->passes ? value : std::nan("");
  }
})

// ---- the target half

PROFILER(cuptiProfilerInitialize, CUpti_Profiler_Initialize_Params, 16, {
  static const bool listening = (fake::on_event(on_event), true);
  initialized += listening ? 1 : 0;
  fake::live("profiler", +1);
})
PROFILER(cuptiProfilerDeInitialize, CUpti_Profiler_DeInitialize_Params, 16, {
  REQUIRE(initialized > 0 && !object, INVALID_OPERATION);
  --initialized;
  fake::live("profiler", -1);
})
PROFILER(cuptiProfilerDeviceSupported, CUpti_Profiler_DeviceSupported_Params, 52, {
  REQUIRE(params->api == CUPTI_PROFILER_RANGE_PROFILING, INVALID_PARAMETER);
  REQUIRE(params->cuDevice < fake_get("devices"), INVALID_DEVICE);
  params->architecture = params->sli = params->vGpu = params->confidentialCompute = params->cmp =
      CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  params->wsl =
      fake_get("wsl") != 0 ? CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED : CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  params->isSupported = params->wsl;
})
PROFILER(cuptiDeviceGetChipName, CUpti_Device_GetChipName_Params, 32, { params->pChipName = fake_get_text("chip"); })
PROFILER(cuptiProfilerGetCounterAvailability, CUpti_Profiler_GetCounterAvailability_Params, 40, {
  REQUIRE(initialized > 0 && !object, INVALID_OPERATION);
  params->counterAvailabilityImageSize = 64;
})
PROFILER(cuptiRangeProfilerEnable, CUpti_RangeProfiler_Enable_Params, 32, {
  REQUIRE(fake_get("permitted") != 0, INSUFFICIENT_PRIVILEGES);
  REQUIRE(initialized > 0 && !object, INVALID_OPERATION);
  object = std::make_unique<CUpti_RangeProfiler_Object>();
  object->device = std::max<std::uintptr_t>(reinterpret_cast<std::uintptr_t>(params->ctx), 1) - 1;
  ranges.clear();
  params->pRangeProfilerObject = object.get();
  fake::live("range_profiler", +1);
})
PROFILER_OF(cuptiRangeProfilerDisable, CUpti_RangeProfiler_Disable_Params, 24, {
  if (is(Step::started)) fake::live("disabled_while_counting", +1);
  object.reset();
  fake::live("range_profiler", -1);
})
PROFILER_OF(cuptiRangeProfilerGetCounterDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params, 64, {
  REQUIRE(params->numMetrics > 0 && params->maxNumOfRanges > 0, INVALID_PARAMETER);
  REQUIRE(params->maxNumRangeTreeNodes >= params->maxNumOfRanges, INVALID_PARAMETER);
  params->counterDataSize = 128 * params->maxNumOfRanges;
})
PROFILER_OF(cuptiRangeProfilerCounterDataImageInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, 40, {
  REQUIRE(is(Step::enabled), INVALID_OPERATION);
  object->rooms = params->counterDataSize / 128;
  object->step = Step::image_ready;
})
PROFILER_OF(cuptiRangeProfilerSetConfig, CUpti_RangeProfiler_SetConfig_Params, 90, {
  REQUIRE(is(Step::image_ready), INVALID_OPERATION);
  const bool kernels = params->range == CUPTI_AutoRange && params->replayMode == CUPTI_KernelReplay;
  const bool modules = params->range == CUPTI_UserRange && params->replayMode == CUPTI_UserReplay;
  REQUIRE(kernels != modules && params->numNestingLevels == 1 && params->minNestingLevel == 1, INVALID_PARAMETER);
  REQUIRE(params->targetNestingLevel <= 1 && (kernels || params->targetNestingLevel == 1), INVALID_PARAMETER);
  REQUIRE(params->maxRangesPerPass == object->rooms && params->passIndex == 0, INVALID_PARAMETER);
  const auto most = static_cast<std::size_t>(fake_get("most_ranges"));
  REQUIRE(most == 0 || object->rooms <= most, INVALID_OPERATION);
  std::memcpy(&object->passes, params->pConfig, sizeof object->passes);
  object->kernels = kernels;
  object->pushes = params->targetNestingLevel == 1;
  object->step = Step::configured;
})
PROFILER_OF(cuptiRangeProfilerStart, CUpti_RangeProfiler_Start_Params, 24, {
  REQUIRE(is(Step::configured) || is(Step::stopped), INVALID_OPERATION);
  object->step = Step::started;
  object->ranges_in_pass = 0;
  object->names_in_pass.clear();
})
PROFILER_OF(cuptiRangeProfilerStop, CUpti_RangeProfiler_Stop_Params, 41, {
  REQUIRE(is(Step::started) && !object->open, INVALID_OPERATION);
  const bool all = ++object->pass == object->passes || object->kernels;
  object->step = all ? Step::submitted : Step::stopped;
  params->isAllPassSubmitted = is(Step::submitted) ? 1 : 0;
})
PROFILER_OF(cuptiRangeProfilerPushRange, CUpti_RangeProfiler_PushRange_Params, 32, {
  REQUIRE(object->pushes && is(Step::started) && !object->open, INVALID_OPERATION);
  REQUIRE(object->names_in_pass.insert(params->pRangeName).second, INVALID_OPERATION);
  object->open = std::make_unique<Range>();
  object->open->name = params->pRangeName;
})
PROFILER_OF(cuptiRangeProfilerPopRange, CUpti_RangeProfiler_PopRange_Params, 24, {
  REQUIRE(object->open, INVALID_OPERATION);
  const auto range = std::move(object->open);
  if (!object->kernels) keep(*range);
})
PROFILER_OF(cuptiRangeProfilerDecodeData, CUpti_RangeProfiler_DecodeData_Params, 32, {
  REQUIRE(is(Step::submitted), INVALID_OPERATION);
  object->step = Step::decoded;
  params->numOfRangeDropped = object->dropped;
})
PROFILER(cuptiRangeProfilerGetCounterDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params, 40,
         { params->numTotalRanges = ranges.size(); })
PROFILER(cuptiRangeProfilerCounterDataGetRangeInfo, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, 56, {
  REQUIRE(params->rangeIndex < ranges.size(), INVALID_PARAMETER);
  params->rangeName = ranges[params->rangeIndex].name.c_str();
})
}
