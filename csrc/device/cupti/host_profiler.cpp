#include "device/cupti/host_profiler.h"

#include <utility>

namespace roofprof::cupti {

void HostObjectDeleter::operator()(CUpti_Profiler_Host_Object* object) const {
  auto request = params<CUpti_Profiler_Host_Deinitialize_Params>();
  request.pHostObject = object;
  api->cuptiProfilerHostDeinitialize(&request);
}

std::vector<std::string> supported_chips(const Api& api) {
  auto request = params<CUpti_Profiler_Host_GetSupportedChips_Params>();
  ROOFPROF_CUPTI(api, cuptiProfilerHostGetSupportedChips, &request);
  return {request.ppChipNames, request.ppChipNames + request.numChips};
}

HostProfiler::HostProfiler(const Api& api, std::string chip, std::vector<std::uint8_t> availability)
    : api_(api), chip_(std::move(chip)), availability_(std::move(availability)) {
  const HostObject object = make_object();
  auto request = params<CUpti_Profiler_Host_GetBaseMetrics_Params>();
  request.pHostObject = object.get();
  request.metricType = CUPTI_METRIC_TYPE_COUNTER;
  ROOFPROF_CUPTI(api_, cuptiProfilerHostGetBaseMetrics, &request);
  base_metrics_.insert(request.ppMetricNames, request.ppMetricNames + request.numMetrics);
}

HostObject HostProfiler::make_object() const {
  auto request = params<CUpti_Profiler_Host_Initialize_Params>();
  request.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  request.pChipName = chip_.c_str();
  request.pCounterAvailabilityImage = availability_.empty() ? nullptr : availability_.data();
  ROOFPROF_CUPTI(api_, cuptiProfilerHostInitialize, &request);
  return {request.pHostObject, HostObjectDeleter{&api_}};
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
  auto request = params<CUpti_Profiler_Host_EvaluateToGpuValues_Params>();
  request.pHostObject = object_.get();
  request.pCounterDataImage = counter_data.data();
  request.counterDataImageSize = counter_data.size();
  request.rangeIndex = range;
  request.ppMetricNames = names_.data();
  request.numMetrics = names_.size();
  request.pMetricValues = values.data();
  return api_.cuptiProfilerHostEvaluateToGpuValues(&request);
}

}  // namespace roofprof::cupti
