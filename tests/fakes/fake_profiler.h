#pragma once
// What the two halves of the fake libcupti's profiler share: the images that pass between them, in a format of their
// own, and how parameters are checked.

#include <cuda.h>
#include <cupti.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fake_state.h"

namespace fake {

// What a configuration says: which metrics, in how many passes.
struct ConfigImage {
  std::array<char, 8> magic{};
  std::uint64_t passes = 0;
  std::uint64_t metrics = 0;
};
inline constexpr std::array<char, 8> kConfigMagic = {'f', 'a', 'k', 'e', 'c', 'o', 'n', 'f'};

// What the device counted in one range.
struct Counts {
  double dram_read_bytes = 0;
  double dram_write_bytes = 0;
  double l2_bytes = 0;
  double l1_bytes = 0;
  double time_ns = 0;
  double flops = 0;
  double tensor_flops = 0;
  double kernels = 0;
};

struct RangeImage {
  std::array<char, 48> name{};
  std::uint64_t passes = 0;  // in which there was such a range
  Counts counts{};
};

// Followed by `rooms` of RangeImage.
struct CounterDataImage {
  std::array<char, 8> magic{};
  std::uint64_t passes = 0;
  std::uint64_t metrics = 0;
  std::uint64_t rooms = 0;
  std::uint64_t used = 0;

  RangeImage* ranges() { return reinterpret_cast<RangeImage*>(this + 1); }
  const RangeImage* ranges() const { return reinterpret_cast<const RangeImage*>(this + 1); }
};
inline constexpr std::array<char, 8> kDataMagic = {'f', 'a', 'k', 'e', 'd', 'a', 't', 'a'};

// The image where it is one of ours, whole and with a range of that index; else null.
inline const CounterDataImage* data_image(const std::uint8_t* bytes, std::size_t size) {
  const auto* image = reinterpret_cast<const CounterDataImage*>(bytes);
  if (image == nullptr || size < sizeof(CounterDataImage) || image->magic != kDataMagic) return nullptr;
  return size == sizeof(CounterDataImage) + image->rooms * sizeof(RangeImage) ? image : nullptr;
}

// CUPTI 13.0 knows these sizes and no others: a larger struct, as later headers have them, is refused.
template <class Params>
bool is_13_0(const Params* params, std::size_t size) {
  return params != nullptr && params->structSize == size && params->pPriv == nullptr;
}

}  // namespace fake

// The first lines of a fake function of the profiler's: PROFILER(cuptiRangeProfilerStop, 41)
#define PROFILER(name, size) \
  FAKE(CUptiResult, name);   \
  if (!fake::is_13_0(params, size)) return CUPTI_ERROR_INVALID_PARAMETER
