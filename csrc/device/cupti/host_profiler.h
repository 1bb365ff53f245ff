#pragma once
// The host half of CUPTI's profiler: it knows which metrics a chip has and into how many passes they fit, and reads
// counter data. With libcupti 13.0 it needs neither driver nor device; later versions ask for a driver first.

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/cupti/api.h"

namespace roofprof::cupti {

struct HostObjectDeleter {
  const Api* api = nullptr;
  void operator()(CUpti_Profiler_Host_Object* object) const;
};
using HostObject = std::unique_ptr<CUpti_Profiler_Host_Object, HostObjectDeleter>;

// The chips that this library knows.
std::vector<std::string> supported_chips(const Api& api);

// A chip, and what of it this system lets be counted.
class HostProfiler {
 public:
  // chip: "GH100". availability: the image that cuptiProfilerGetCounterAvailability gives; empty: all that such chips
  // have. Throws CuptiError: CUPTI_ERROR_INVALID_CHIP_NAME where the library does not know the chip.
  HostProfiler(const Api& api, std::string chip, std::vector<std::uint8_t> availability = {});

  const Api& api() const { return api_; }
  const std::string& chip() const { return chip_; }
  bool has(std::string_view base_metric) const { return base_metrics_.contains(base_metric); }
  HostObject make_object() const;

 private:
  const Api& api_;
  std::string chip_;
  std::vector<std::uint8_t> availability_;
  std::set<std::string, std::less<>> base_metrics_;
};

// Metrics to be collected together. Uses the HostProfiler as long as it lives.
class Configuration {
 public:
  // Names with their rollup: "dram__bytes.sum". Throws CuptiError: CUPTI_ERROR_INVALID_PARAMETER for a name that the
  // chip lacks or that has no rollup.
  Configuration(const HostProfiler& host, std::vector<std::string> metrics);
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;

  const Api& api() const { return api_; }
  const std::vector<std::string>& metrics() const { return metrics_; }
  std::span<const std::uint8_t> image() const { return image_; }
  std::size_t passes() const { return passes_; }
  // Returns the metrics' names in the form that CUPTI takes: pointers that it could change, but does not.
  const char** names() const { return names_.data(); }

  // The metrics' values in one range of a counter data image; not a number where one could not be collected. values has
  // room for each of the metrics.
  CUptiResult evaluate(std::span<const std::uint8_t> counter_data, std::size_t range, std::span<double> values) const;

 private:
  const Api& api_;
  std::vector<std::string> metrics_;
  mutable std::vector<const char*> names_;
  HostObject object_;
  std::vector<std::uint8_t> image_;
  std::size_t passes_ = 0;
};

}  // namespace roofprof::cupti
