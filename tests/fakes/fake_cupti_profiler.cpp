// A simulated libcupti.so.13, third part: the target half of the range profiler. It is stricter than the real one is
// known to be: any order of calls but the documented one, ranges inside each other and ranges of one name are refused.
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fake_profiler.h"

namespace {

enum class Step { enabled, image_ready, configured, started, stopped, submitted, decoded };

}  // namespace

// Known to callers by its address alone. There is at most one.
struct CUpti_RangeProfiler_Object {
  unsigned device = 0;
  Step step = Step::enabled;
  fake::ConfigImage config{};
  fake::CounterDataImage* data = nullptr;
  bool kernels = true;
  bool pushes = false;  // ranges that the client names
  std::size_t max_ranges = 0;
  std::uint64_t pass = 0;
  std::size_t dropped = 0;
  std::size_t ranges_in_pass = 0;
  std::set<std::string, std::less<>> names_in_pass;
  fake::RangeImage open{};
  bool is_open = false;
};

namespace {

std::mutex mutex;
std::unique_ptr<CUpti_RangeProfiler_Object> object;
int initialized = 0;

CUcontext context_of_device(CUcontext context) {
  return context != nullptr ? context : reinterpret_cast<CUcontext>(std::uintptr_t{1});
}

bool is_ours(const CUpti_RangeProfiler_Object* asked) { return object && object.get() == asked; }

// A range has ended: it gets a room, or the one that it had in an earlier pass.
void keep(const fake::RangeImage& range) {
  if (++object->ranges_in_pass > object->max_ranges) {
    ++object->dropped;
    return;
  }
  fake::RangeImage* first = object->data->ranges();
  fake::RangeImage* last = first + object->data->used;
  fake::RangeImage* found = std::find_if(first, last, [&](const auto& kept) { return kept.name == range.name; });
  if (found == last) {
    if (object->data->used == object->data->rooms) {
      ++object->dropped;
      return;
    }
    ++object->data->used;
    *found = range;
    found->passes = 0;
  }
  found->passes += object->kernels ? object->config.passes : 1;  // kernels are replayed there and then
}

void add(const fake::Ran& ran, fake::Counts& counts) {
  counts.dram_read_bytes += ran.launch.dram_read_bytes;
  counts.dram_write_bytes += ran.launch.dram_write_bytes;
  counts.l2_bytes += ran.launch.l2_bytes;
  counts.l1_bytes += ran.launch.l1_bytes;
  counts.time_ns += static_cast<double>(ran.end_ns - ran.start_ns);
  counts.flops += ran.launch.flops;
  counts.tensor_flops += static_cast<double>(fake_get("tensor_flops"));
  counts.kernels += 1;
}

void name(fake::RangeImage& range, const char* text) {
  std::snprintf(range.name.data(), range.name.size(), "%s", text);
}

void on_launch(const fake::Ran& ran) {
  const std::lock_guard lock(mutex);
  if (!object || object->step != Step::started) return;
  if (ran.launch.kind != FAKE_KERNEL || ran.launch.device != object->device) return;
  if (object->kernels) {
    if (fake_get("auto_range_needs_push") != 0 && !object->is_open) return;
    fake::RangeImage range;
    const std::string_view names = fake_get_text("auto_range_names");
    const std::string number = std::to_string(object->ranges_in_pass);
    name(range, ((names == "nested" ? "kernels/" : names == "odd" ? "#" : "") + number).c_str());
    add(ran, range.counts);
    keep(range);
  } else if (object->is_open) {
    add(ran, object->open.counts);
  }
}

CUptiResult of(CUpti_Profiler_Support_Level& level, const char* flag) {
  const bool named = std::string_view(fake_get_text("not_supported")) == flag;
  level = named ? CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED : CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  return CUPTI_SUCCESS;
}

}  // namespace

// The first lines of what is called on the one object.
#define OF_PROFILER(name, size)      \
  PROFILER(name, size);              \
  const std::lock_guard lock(mutex); \
  if (!is_ours(params->pRangeProfilerObject)) return CUPTI_ERROR_INVALID_PARAMETER

extern "C" {

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params* params) {
  PROFILER(cuptiProfilerInitialize, 16);
  static const bool listening = (fake::on_launch(on_launch), true);
  const std::lock_guard lock(mutex);
  initialized += listening ? 1 : 0;
  fake::live("profiler", +1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params* params) {
  PROFILER(cuptiProfilerDeInitialize, 16);
  const std::lock_guard lock(mutex);
  if (initialized == 0 || object) return CUPTI_ERROR_INVALID_OPERATION;
  --initialized;
  fake::live("profiler", -1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params* params) {
  PROFILER(cuptiProfilerDeviceSupported, 52);
  if (params->api != CUPTI_PROFILER_RANGE_PROFILING) return CUPTI_ERROR_INVALID_PARAMETER;
  if (params->cuDevice >= fake_get("devices")) return CUPTI_ERROR_INVALID_DEVICE;
  of(params->architecture, "architecture");
  of(params->sli, "sli");
  of(params->vGpu, "vgpu");
  of(params->confidentialCompute, "confidential_compute");
  of(params->cmp, "cmp");
  of(params->wsl, "wsl");
  const bool supported = std::string_view(fake_get_text("not_supported")) == "nothing";
  params->isSupported = supported ? CUPTI_PROFILER_CONFIGURATION_SUPPORTED : CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* params) {
  PROFILER(cuptiDeviceGetChipName, 32);
  if (static_cast<long long>(params->deviceIndex) >= fake_get("devices")) return CUPTI_ERROR_INVALID_DEVICE;
  params->pChipName = fake_get_text("chip");
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params* params) {
  PROFILER(cuptiProfilerGetCounterAvailability, 40);
  const std::lock_guard lock(mutex);
  if (initialized == 0 || object) return CUPTI_ERROR_INVALID_OPERATION;
  constexpr std::size_t kSize = 64;
  if (params->pCounterAvailabilityImage == nullptr) {
    params->counterAvailabilityImageSize = kSize;
    return CUPTI_SUCCESS;
  }
  if (params->counterAvailabilityImageSize < kSize) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  std::memset(params->pCounterAvailabilityImage, 0x5a, kSize);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* params) {
  PROFILER(cuptiRangeProfilerEnable, 32);
  if (fake_get("permitted") == 0) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  const std::lock_guard lock(mutex);
  if (initialized == 0 || object) return CUPTI_ERROR_INVALID_OPERATION;
  object = std::make_unique<CUpti_RangeProfiler_Object>();
  object->device = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(context_of_device(params->ctx)) - 1);
  params->pRangeProfilerObject = object.get();
  fake::live("range_profiler", +1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params* params) {
  OF_PROFILER(cuptiRangeProfilerDisable, 24);
  if (object->step == Step::started) fake::live("disabled_while_counting", +1);
  object.reset();
  fake::live("range_profiler", -1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params* params) {
  OF_PROFILER(cuptiRangeProfilerGetCounterDataSize, 64);
  if (params->numMetrics == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  if (params->maxNumOfRanges == 0 || params->maxNumRangeTreeNodes < params->maxNumOfRanges) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  object->max_ranges = params->maxNumOfRanges;
  object->config.metrics = params->numMetrics;
  params->counterDataSize = sizeof(fake::CounterDataImage) + params->maxNumOfRanges * sizeof(fake::RangeImage);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params* params) {
  OF_PROFILER(cuptiRangeProfilerCounterDataImageInitialize, 40);
  if (object->step != Step::enabled || object->max_ranges == 0) return CUPTI_ERROR_INVALID_OPERATION;
  const std::size_t rooms = object->max_ranges;
  if (params->counterDataSize != sizeof(fake::CounterDataImage) + rooms * sizeof(fake::RangeImage)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  object->data = new (params->pCounterData) fake::CounterDataImage{fake::kDataMagic, 0, object->config.metrics, rooms};
  object->step = Step::image_ready;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* params) {
  OF_PROFILER(cuptiRangeProfilerSetConfig, 90);
  if (object->step != Step::image_ready) return CUPTI_ERROR_INVALID_OPERATION;
  const std::uint64_t metrics = object->config.metrics;
  if (params->configSize != sizeof object->config) return CUPTI_ERROR_INVALID_PARAMETER;
  std::memcpy(&object->config, params->pConfig, sizeof object->config);
  const bool own = object->config.magic == fake::kConfigMagic && object->config.metrics == metrics &&
                   reinterpret_cast<std::uint8_t*>(object->data) == params->pCounterDataImage;
  const bool flat = params->numNestingLevels == 1 && params->minNestingLevel == 1;
  const bool kernels = params->range == CUPTI_AutoRange && params->replayMode == CUPTI_KernelReplay;
  const bool modules = params->range == CUPTI_UserRange && params->replayMode == CUPTI_UserReplay;
  if (!own || !flat || kernels == modules || params->passIndex != 0) return CUPTI_ERROR_INVALID_PARAMETER;
  if (params->targetNestingLevel > 1 || (modules && params->targetNestingLevel != 1)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  const auto most = static_cast<std::size_t>(fake_get("most_ranges"));
  if (most != 0 && params->maxRangesPerPass > most) return static_cast<CUptiResult>(fake_get("most_ranges_error"));
  object->kernels = kernels;
  object->pushes = params->targetNestingLevel == 1;
  object->max_ranges = params->maxRangesPerPass;
  object->data->passes = object->config.passes;
  object->step = Step::configured;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params* params) {
  OF_PROFILER(cuptiRangeProfilerStart, 24);
  if (object->step != Step::configured && object->step != Step::stopped) return CUPTI_ERROR_INVALID_OPERATION;
  object->step = Step::started;
  object->ranges_in_pass = 0;
  object->names_in_pass.clear();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* params) {
  OF_PROFILER(cuptiRangeProfilerStop, 41);
  if (object->step != Step::started || object->is_open) return CUPTI_ERROR_INVALID_OPERATION;
  ++object->pass;
  const bool all = object->kernels || object->pass == object->config.passes;
  object->step = all && fake_get("endless_passes") == 0 ? Step::submitted : Step::stopped;
  params->passIndex = object->pass;
  params->targetNestingLevel = 1;
  params->isAllPassSubmitted = object->step == Step::submitted ? 1 : 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params* params) {
  OF_PROFILER(cuptiRangeProfilerPushRange, 32);
  if (params->pRangeName == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!object->pushes || object->step != Step::started || object->is_open) return CUPTI_ERROR_INVALID_OPERATION;
  if (!object->names_in_pass.insert(params->pRangeName).second) return CUPTI_ERROR_INVALID_OPERATION;
  object->open = {};
  name(object->open, params->pRangeName);
  object->is_open = true;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params* params) {
  OF_PROFILER(cuptiRangeProfilerPopRange, 24);
  if (!object->is_open) return CUPTI_ERROR_INVALID_OPERATION;
  object->is_open = false;
  if (object->kernels) return CUPTI_SUCCESS;
  if (object->open.counts.kernels > 0 || fake_get("empty_ranges") != 0) keep(object->open);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* params) {
  OF_PROFILER(cuptiRangeProfilerDecodeData, 32);
  if (object->step != Step::submitted) return CUPTI_ERROR_INVALID_OPERATION;
  object->step = Step::decoded;
  params->numOfRangeDropped = object->dropped;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params* params) {
  PROFILER(cuptiRangeProfilerGetCounterDataInfo, 40);
  const auto* image = fake::data_image(params->pCounterDataImage, params->counterDataImageSize);
  if (image == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  params->numTotalRanges = image->used;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataGetRangeInfo(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params* params) {
  PROFILER(cuptiRangeProfilerCounterDataGetRangeInfo, 56);
  const auto* image = fake::data_image(params->pCounterDataImage, params->counterDataImageSize);
  if (image == nullptr || params->rangeIndex >= image->used) return CUPTI_ERROR_INVALID_PARAMETER;
  params->rangeName = image->ranges()[params->rangeIndex].name.data();
  return CUPTI_SUCCESS;
}
}
