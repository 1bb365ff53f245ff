#include "machine/measure.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <stdexcept>
#include <utility>

#include "core/device_kind.h"
#include "machine/common/dispatch_defaults.h"
#include "machine/cpu/measure_cpu.h"
#include "machine/gpu/measure_gpu.h"

namespace roofprof {

std::string named_device(const std::string& device) {
  const auto kind = device_kind(device);
  if (kind == DeviceKind::cpu) return "cpu";
  const bool has_index = device.find(':') != std::string::npos;
  if (kind != DeviceKind::nvidia || has_index || !at::detail::getCUDAHooks().hasCUDA()) return device;
  try {
    return c10::impl::VirtualGuardImpl(c10::Device(device).type()).getDevice().str();
  } catch (const c10::Error&) {  // the code that uses the device reports what is wrong with it
    return device;
  }
}

MeasuredCeilings measure_ceilings(const std::string& device, const Progress& progress) {
  const DispatchDefaults defaults;
  const std::string named = named_device(device);
  switch (device_kind(named)) {
    case DeviceKind::cpu:
      return measure_cpu(progress);
    case DeviceKind::nvidia:
      return measure_gpu(named, progress);
    case DeviceKind::meta:
    case DeviceKind::other:
      break;
  }
  throw std::invalid_argument("roofs can be measured for \"cpu\" and for \"cuda:<index>\", not for \"" + device +
                              "\": give a file of them instead");
}

Ceilings Ceilings::measure(const std::string& device, const Progress& progress) {
  MeasuredCeilings measured = measure_ceilings(device, progress);
  for (const std::string& note : measured.notes) {
    if (progress) progress("roofs of this machine: " + note);
  }
  return std::move(measured.ceilings);
}

}  // namespace roofprof
