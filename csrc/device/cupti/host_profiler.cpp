#include "device/cupti/host_profiler.h"

#include <utility>

namespace roofprof::cupti {

void HostObjectDeleter::operator()(CUpti_Profiler_Host_Object* object) const {
  auto asked = params<CUpti_Profiler_Host_Deinitialize_Params>();
  asked.pHostObject = object;
  api->cuptiProfilerHostDeinitialize(&asked);
}

std::vector<std::string> supported_chips(const Api& api) {
  auto asked = params<CUpti_Profiler_Host_GetSupportedChips_Params>();
  ROOFPROF_CUPTI(api, cuptiProfilerHostGetSupportedChips, &asked);
  return {asked.ppChipNames, asked.ppChipNames + asked.numChips};
}

HostProfiler::HostProfiler(const Api& api, std::string chip, std::vector<std::uint8_t> availability)
    : api_(api), chip_(std::move(chip)), availability_(std::move(availability)) {
  const HostObject object = make_object();
  auto asked = params<CUpti_Profiler_Host_GetBaseMetrics_Params>();
  asked.pHostObject = object.get();
  asked.metricType = CUPTI_METRIC_TYPE_COUNTER;
  ROOFPROF_CUPTI(api_, cuptiProfilerHostGetBaseMetrics, &asked);
  base_metrics_.insert(asked.ppMetricNames, asked.ppMetricNames + asked.numMetrics);
}

HostObject HostProfiler::make_object() const {
  auto asked = params<CUpti_Profiler_Host_Initialize_Params>();
  asked.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  asked.pChipName = chip_.c_str();
  asked.pCounterAvailabilityImage = availability_.empty() ? nullptr : availability_.data();
  ROOFPROF_CUPTI(api_, cuptiProfilerHostInitialize, &asked);
  return {asked.pHostObject, HostObjectDeleter{&api_}};
}

Configuration::Configuration(const HostProfiler& host, std::vector<std::string> metrics)
    : api_(host.api()), metrics_(std::move(metrics)), object_(host.make_object()) {
  for (const std::string& metric : metrics_) names_.push_back(metric.c_str());

  auto added = params<CUpti_Profiler_Host_ConfigAddMetrics_Params>();
  added.pHostObject = object_.get();
  added.ppMetricNames = names_.data();
  added.numMetrics = names_.size();
  ROOFPROF_CUPTI(api_, cuptiProfilerHostConfigAddMetrics, &added);

  auto size = params<CUpti_Profiler_Host_GetConfigImageSize_Params>();
  size.pHostObject = object_.get();
  ROOFPROF_CUPTI(api_, cuptiProfilerHostGetConfigImageSize, &size);
  image_.resize(size.configImageSize);

  auto filled = params<CUpti_Profiler_Host_GetConfigImage_Params>();
  filled.pHostObject = object_.get();
  filled.configImageSize = image_.size();
  filled.pConfigImage = image_.data();
  ROOFPROF_CUPTI(api_, cuptiProfilerHostGetConfigImage, &filled);

  auto counted = params<CUpti_Profiler_Host_GetNumOfPasses_Params>();
  counted.configImageSize = image_.size();
  counted.pConfigImage = image_.data();
  ROOFPROF_CUPTI(api_, cuptiProfilerHostGetNumOfPasses, &counted);
  passes_ = counted.numOfPasses;
}

CUptiResult Configuration::evaluate(std::span<const std::uint8_t> counter_data, std::size_t range,
                                    std::span<double> values) const {
  auto asked = params<CUpti_Profiler_Host_EvaluateToGpuValues_Params>();
  asked.pHostObject = object_.get();
  asked.pCounterDataImage = counter_data.data();
  asked.counterDataImageSize = counter_data.size();
  asked.rangeIndex = range;
  asked.ppMetricNames = names_.data();
  asked.numMetrics = names_.size();
  asked.pMetricValues = values.data();
  return api_.cuptiProfilerHostEvaluateToGpuValues(&asked);
}

}  // namespace roofprof::cupti
