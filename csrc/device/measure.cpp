#include "device/measure.h"

#include <stdexcept>

#include "device/cpu/measure_cpu.h"
#include "device/dispatch_defaults.h"
#include "device/gpu/measure_gpu.h"

namespace roofprof {

MeasuredCeilings measure_ceilings(const std::string& device, const std::function<void(std::string_view)>& progress) {
  const DispatchDefaults defaults;
  if (device == "cpu") return measure_cpu(progress);
  if (device == "cuda" || device.starts_with("cuda:")) return measure_gpu(device, progress);
  throw std::invalid_argument("roofs can be measured for \"cpu\" and for \"cuda:<index>\", not for \"" + device +
                              "\": give a file of them instead");
}

}  // namespace roofprof
