// A simulated libcupti.so.13: the host half of the profiler, for a few chips and the metrics that count for us.
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fake_profiler.h"

// Known to callers by its address alone.
struct CUpti_Profiler_Host_Object {
  std::string chip;
  std::vector<std::string> base_metrics;
  std::vector<const char*> base_names;
  std::vector<std::string> metrics;
};

namespace {

constexpr std::string_view kTensor = "sm__ops_path_tensor_src_";

// What tells chips apart: how their DRAM counters begin (none: no counter) and their tensor cores' types.
struct Chip {
  std::vector<std::string> dram;
  std::vector<std::string> tensor;
};

const std::map<std::string, Chip, std::less<>> chips = {
    {"GH100", {{"", "_read", "_write"}, {"fp16", "bf16_dst_fp32", "tf32_dst_fp32", "fp8", "int8", "fp64"}}},
    {"GB202", {{"", "_op_read", "_op_write"}, {"fp16_dst_fp16", "fp16_dst_fp32", "bf16_dst_fp32"}}},
    {"GB10B", {{}, {"fp16_dst_fp16", "fp16_dst_fp32", "bf16_dst_fp32"}}},
    {"TU116", {{"", "_read", "_write"}, {}}},
};

std::vector<std::string> metrics_of(const Chip& chip) {
  std::vector<std::string> metrics = {"lts__t_bytes", "l1tex__t_bytes", "gpu__time_duration"};
  for (const std::string& suffix : chip.dram) metrics.push_back("dram__bytes" + suffix);
  for (const std::string& type : chip.tensor) metrics.push_back(std::string(kTensor) + type);
  for (const char* kind : {"hadd", "hmul", "hfma", "fadd", "fmul", "ffma", "dadd", "dmul", "dfma"}) {
    metrics.push_back("smsp__sass_thread_inst_executed_op_" + std::string(kind) + "_pred_on");
  }
  return metrics;
}

// A pass holds all memory counters and one tensor type; two types of GH100's need two by themselves; SASS a pass more.
std::uint64_t passes_of(const std::vector<std::string>& metrics) {
  std::uint64_t hardware = 0;
  std::uint64_t tensor = 0;
  std::uint64_t sass = 0;
  for (const std::string& metric : metrics) {
    if (metric.starts_with("smsp__sass")) {
      sass = 1;
    } else if (metric.starts_with(kTensor)) {
      const std::string_view type = std::string_view(metric).substr(kTensor.size());
      tensor += type == "fp16.sum" || type == "int8.sum" ? 2 : 1;
    } else {
      hardware = 1;
    }
  }
  return sass + std::max(hardware, tensor);
}

double value_of(std::string_view metric, const fake::Counts& counts) {
  if (metric == "dram__bytes.sum") return counts.dram_read_bytes + counts.dram_write_bytes;
  if (metric == "dram__bytes_read.sum" || metric == "dram__bytes_op_read.sum") return counts.dram_read_bytes;
  if (metric == "dram__bytes_write.sum" || metric == "dram__bytes_op_write.sum") return counts.dram_write_bytes;
  if (metric == "lts__t_bytes.sum") return counts.l2_bytes;
  if (metric == "l1tex__t_bytes.sum") return counts.l1_bytes;
  if (metric == "gpu__time_duration.sum") return counts.time_ns;
  if (metric == "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum") return counts.flops / 2;
  if (metric == "sm__ops_path_tensor_src_bf16_dst_fp32.sum") return counts.tensor_flops;
  return 0;
}

bool has(const CUpti_Profiler_Host_Object& object, std::string_view metric) {
  if (!metric.ends_with(".sum")) return false;
  metric.remove_suffix(4);
  return std::ranges::find(object.base_metrics, metric) != object.base_metrics.end();
}

std::mutex mutex;
std::map<CUpti_Profiler_Host_Object*, std::unique_ptr<CUpti_Profiler_Host_Object>> objects;

CUpti_Profiler_Host_Object* find(CUpti_Profiler_Host_Object* object) {
  const auto found = objects.find(object);
  return found != objects.end() ? found->second.get() : nullptr;
}

}  // namespace

extern "C" {

CUptiResult cuptiProfilerHostGetSupportedChips(CUpti_Profiler_Host_GetSupportedChips_Params* params) {
  PROFILER(cuptiProfilerHostGetSupportedChips, 32);
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all;
    for (const auto& [name, chip] : chips) all.push_back(name.c_str());
    return all;
  }();
  params->numChips = names.size();
  params->ppChipNames = names.data();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* params) {
  PROFILER(cuptiProfilerHostInitialize, 48);
  const auto chip = chips.find(std::string_view(params->pChipName));
  if (chip == chips.end()) return CUPTI_ERROR_INVALID_CHIP_NAME;
  if (params->profilerType != CUPTI_PROFILER_TYPE_RANGE_PROFILER) return CUPTI_ERROR_INVALID_PARAMETER;
  auto object = std::make_unique<CUpti_Profiler_Host_Object>();
  object->chip = chip->first;
  object->base_metrics = metrics_of(chip->second);
  for (const std::string& metric : object->base_metrics) object->base_names.push_back(metric.c_str());
  const std::lock_guard lock(mutex);
  params->pHostObject = object.get();
  objects.emplace(params->pHostObject, std::move(object));
  fake::live("host_object", +1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params* params) {
  PROFILER(cuptiProfilerHostDeinitialize, 24);
  const std::lock_guard lock(mutex);
  if (objects.erase(params->pHostObject) == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  fake::live("host_object", -1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params* params) {
  PROFILER(cuptiProfilerHostGetBaseMetrics, 48);
  const std::lock_guard lock(mutex);
  CUpti_Profiler_Host_Object* object = find(params->pHostObject);
  if (object == nullptr || params->metricType != CUPTI_METRIC_TYPE_COUNTER) return CUPTI_ERROR_INVALID_PARAMETER;
  params->ppMetricNames = object->base_names.data();
  params->numMetrics = object->base_names.size();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* params) {
  PROFILER(cuptiProfilerHostConfigAddMetrics, 40);
  const std::lock_guard lock(mutex);
  CUpti_Profiler_Host_Object* object = find(params->pHostObject);
  if (object == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::string_view refused = fake_get_text("refused_metric");
  for (std::size_t i = 0; i < params->numMetrics; ++i) {
    const std::string metric = params->ppMetricNames[i];
    if (!has(*object, metric) || metric.find(refused) != std::string::npos) return CUPTI_ERROR_INVALID_PARAMETER;
    object->metrics.push_back(metric);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* params) {
  PROFILER(cuptiProfilerHostGetConfigImageSize, 32);
  const std::lock_guard lock(mutex);
  CUpti_Profiler_Host_Object* object = find(params->pHostObject);
  if (object == nullptr || object->metrics.empty()) return CUPTI_ERROR_INVALID_PARAMETER;
  params->configImageSize = sizeof(fake::ConfigImage);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* params) {
  PROFILER(cuptiProfilerHostGetConfigImage, 40);
  const std::lock_guard lock(mutex);
  CUpti_Profiler_Host_Object* object = find(params->pHostObject);
  if (object == nullptr || params->configImageSize != sizeof(fake::ConfigImage)) return CUPTI_ERROR_INVALID_PARAMETER;
  const fake::ConfigImage image{fake::kConfigMagic, passes_of(object->metrics), object->metrics.size()};
  std::memcpy(params->pConfigImage, &image, sizeof image);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* params) {
  PROFILER(cuptiProfilerHostGetNumOfPasses, 40);
  fake::ConfigImage image;
  if (params->configImageSize != sizeof image) return CUPTI_ERROR_INVALID_PARAMETER;
  std::memcpy(&image, params->pConfigImage, sizeof image);
  if (image.magic != fake::kConfigMagic) return CUPTI_ERROR_INVALID_PARAMETER;
  params->numOfPasses = image.passes;
  return CUPTI_SUCCESS;
}

// A range that was not there in every pass has no values.
CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* params) {
  PROFILER(cuptiProfilerHostEvaluateToGpuValues, 72);
  const std::lock_guard lock(mutex);
  CUpti_Profiler_Host_Object* object = find(params->pHostObject);
  const fake::CounterDataImage* image = fake::data_image(params->pCounterDataImage, params->counterDataImageSize);
  if (object == nullptr || image == nullptr || params->rangeIndex >= image->used) return CUPTI_ERROR_INVALID_PARAMETER;
  const fake::RangeImage& range = image->ranges()[params->rangeIndex];
  for (std::size_t i = 0; i < params->numMetrics; ++i) {
    const std::string metric = params->ppMetricNames[i];
    if (std::ranges::find(object->metrics, metric) == object->metrics.end()) return CUPTI_ERROR_INVALID_METRIC_NAME;
    params->pMetricValues[i] = range.passes == image->passes ? value_of(metric, range.counts) : std::nan("");
  }
  return CUPTI_SUCCESS;
}
}
