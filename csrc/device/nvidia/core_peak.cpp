#include "device/nvidia/core_peak.h"

namespace roofprof::cuda {

std::optional<int> fp32_lanes_per_sm(int compute_major, int compute_minor) {
  switch (compute_major * 10 + compute_minor) {
    case 30:
    case 32:
    case 35:
    case 37:
      return 192;
    case 50:
    case 52:
    case 53:
    case 61:
    case 62:
    case 86:
    case 87:
    case 88:
    case 89:
    case 90:
    case 100:
    case 103:
    case 110:
    case 120:
    case 121:
      return 128;
    case 60:
    case 70:
    case 72:
    case 75:
    case 80:
      return 64;
    default:
      return std::nullopt;
  }
}

std::optional<double> cuda_core_fp32_peak(std::int64_t sm_count, std::int64_t clock_hz, int compute_major,
                                          int compute_minor) {
  const auto lanes = fp32_lanes_per_sm(compute_major, compute_minor);
  if (!lanes || sm_count <= 0 || clock_hz <= 0) return std::nullopt;
  return static_cast<double>(sm_count) * *lanes * static_cast<double>(clock_hz) * 2;
}

}  // namespace roofprof::cuda
