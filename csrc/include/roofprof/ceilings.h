#pragma once
// The roofs of a machine: peak operation rates by dtype, peak bandwidths by memory level, each with its provenance.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofprof/dtype.h"

namespace roofprof {

// Where a figure comes from; a figure is trusted once it says so.
struct Provenance {
  std::string source;            // "measured", "published" or "given"
  std::string method;            // how it was measured, where it was published, who gave it
  std::string date;              // ISO 8601; empty where it has none
  std::optional<double> spread;  // (max - min) / max over the measurement's repeats
  bool operator==(const Provenance&) const = default;
};

// Peak operations per second (FLOP/s for floating dtypes) of one dtype.
struct ComputeCeiling {
  DType dtype = DType::other;
  double operations_per_second = 0;
  Provenance provenance;
  bool operator==(const ComputeCeiling&) const = default;
};

// The level of copies between host and device; no footprint ever "fits" a link.
inline constexpr std::string_view kHostLink = "host link";

// Peak bytes per second of one memory level.
struct MemoryCeiling {
  std::string level;  // "L1", "L2", "L3", "DRAM", "host link"
  double bytes_per_second = 0;
  std::int64_t capacity_bytes = 0;  // what the level holds; 0: without bound (DRAM)
  Provenance provenance;
  bool operator==(const MemoryCeiling&) const = default;
};

// Told what a measurement is doing, a line at a time.
using Progress = std::function<void(std::string_view)>;

struct Ceilings {
  std::string device;  // what was measured, in words
  std::vector<ComputeCeiling> compute;
  std::vector<MemoryCeiling> memory;  // from the smallest level to the largest

  bool empty() const { return compute.empty() && memory.empty(); }
  // The roof of a dtype; null where there is none.
  const ComputeCeiling* compute_for(DType dtype) const;
  // The roof of the smallest level that holds `footprint_bytes`; null where there is none.
  const MemoryCeiling* memory_for(std::int64_t footprint_bytes) const;
  // The roof of the level of that name; null where there is none.
  const MemoryCeiling* memory_level(std::string_view level) const;

  // Measures the roofs of a device ("cpu", "cuda:0") with as many threads as torch uses now; takes about ten seconds,
  // and at most twenty. `progress` also gets the notes on what was left out or looks odd. Throws std::invalid_argument
  // for a device that cannot be measured.
  static Ceilings measure(const std::string& device = "cpu", const Progress& progress = {});
  // The roofs in a file that save or `roofprof ceilings --json` wrote. Throws std::runtime_error: one sentence that
  // names the file and says what is wrong with it.
  static Ceilings load(const std::string& path);
  // Written whole or not at all; throws std::runtime_error naming the path.
  void save(const std::string& path) const;

  bool operator==(const Ceilings&) const = default;
};

}  // namespace roofprof
