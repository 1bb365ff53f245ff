#pragma once
// The kinds of devices that roofprof tells apart. A vendor of GPUs is one enumerator: the compiler then names each
// switch that must choose the vendor's code.

#include <cstdint>
#include <string_view>

namespace roofprof {

enum class DeviceKind : std::uint8_t { cpu, meta, nvidia, other };

// Returns the kind of a device by torch's name of it, such as "cuda" or "cuda:0".
constexpr DeviceKind device_kind(std::string_view device) {
  const auto type = device.substr(0, device.find(':'));
  if (type == "cpu") return DeviceKind::cpu;
  if (type == "meta") return DeviceKind::meta;
  if (type == "cuda") return DeviceKind::nvidia;
  return DeviceKind::other;
}

// Returns whether a collector (device/interface/collector.h) can record what runs on such devices.
constexpr bool has_collector(DeviceKind kind) { return kind == DeviceKind::nvidia; }

}  // namespace roofprof
