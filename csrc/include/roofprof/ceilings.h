#pragma once
// The roofs of a machine: peak operation rates by dtype, peak bandwidths by memory level, each with its provenance.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "roofprof/dtype.h"
#include "roofprof/error.h"
#include "roofprof/work.h"

namespace roofprof {

// The origin of a figure. No figure is trusted without one.
struct Provenance {
  std::string source;            // "measured", "published" or "given"
  std::string method;            // how it was measured, where it was published, who gave it
  std::string date;              // ISO 8601; empty where it has none
  std::optional<double> spread;  // (max - min) / max over the measurement's repeats
  bool operator==(const Provenance&) const = default;
};

// The rate that the work behind a peak keeps up for `seconds`: the median, with the medians of the clock and the power
// (0: not known).
struct SustainedRate {
  double operations_per_second = 0;
  double seconds = 0;
  double clock_hz = 0;
  double power_watts = 0;
  bool operator==(const SustainedRate&) const = default;
};

// The product or convolution that gave a measured peak of a GPU: the fastest of those that were tried.
struct FastestWork {
  std::string shape;        // with the storage order of its operands: "at::mm 4096x4096x4096 (MxKxN), right transposed"
  std::string kernel_name;  // the longest kernel of a call, as the device names it
  std::string missing;      // why the kernel is not known; empty: it is
  bool operator==(const FastestWork&) const = default;
};

// Peak operations per second (FLOP/s for floating dtypes) of one dtype. The measured peak of a GPU is that of the first
// milliseconds, before its power limit or heat hold it down.
struct ComputeCeiling {
  DType dtype = DType::other;
  double operations_per_second = 0;
  Provenance provenance;
  std::optional<SustainedRate> sustained = {};
  std::optional<FastestWork> fastest = {};
  bool operator==(const ComputeCeiling&) const = default;
};

// The level of copies between host and device; no footprint ever "fits" a link.
inline constexpr std::string_view kHostLink = "host link";

// Peak bytes per second of one memory level.
struct MemoryCeiling {
  std::string level;  // "L1", "L2", "L3", "Infinity Cache", "DRAM", "host link"
  double bytes_per_second = 0;
  std::int64_t capacity_bytes = 0;  // what the level holds; 0: without bound (DRAM)
  Provenance provenance;
  // The highest rate of its counter of bytes (lts__t_bytes) in bytes per second, which includes more than programs ask
  // for; 0: not counted.
  double counted_bytes_per_second = 0;
  bool operator==(const MemoryCeiling&) const = default;
};

// The bytes that one call of an op moves. `updated_bytes` were read and then written in the same place (x += 1); they
// are in both of the others, and in memory once.
struct MemoryTraffic {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t updated_bytes = 0;

  // Returns the bytes that memory must hold at once for the call.
  [[nodiscard]] std::int64_t footprint_bytes() const { return saturating_add(read_bytes, write_bytes) - updated_bytes; }
};

// Bytes per second over one working set (all threads and arrays together), by kind of access; reads and writes are
// both counted.
struct BandwidthPoint {
  std::int64_t working_set_bytes = 0;
  double read = 0;    // x is read
  double triad = 0;   // x = y + s * z: one third is written
  double copy = 0;    // x = y: one half
  double write = 0;   // x is written
  double update = 0;  // x = s - x, in place
  double spread = 0;  // the largest among them of (max - min) / max over the measurement's repeats
  bool operator==(const BandwidthPoint&) const = default;
};

// Bandwidth against working set: caches are slopes as much as steps, and sizes that a system states are hints.
struct BandwidthCurve {
  std::vector<BandwidthPoint> points;  // from the smallest working set to the largest
  Provenance provenance;

  [[nodiscard]] bool empty() const { return points.empty(); }
  // Returns the bandwidth for that working set and that mix of reads and writes, in bytes per second, interpolated
  // between points. Throws LogicError where the curve is empty, as do the next two.
  [[nodiscard]] double bytes_per_second(const MemoryTraffic& traffic, std::int64_t working_set_bytes) const;
  // Returns the bandwidth for the traffic's footprint.
  [[nodiscard]] double bytes_per_second(const MemoryTraffic& traffic) const {
    return bytes_per_second(traffic, traffic.footprint_bytes());
  }
  // Returns the spread of the smallest point that holds the working set.
  [[nodiscard]] double spread_at(std::int64_t working_set_bytes) const;
  bool operator==(const BandwidthCurve&) const = default;
};

// The roof that bounds the traffic of an op: its bandwidth, and the level that gives it its name.
struct MemoryRoof {
  std::string_view level;  // lives as long as the ceilings; if they are temporary, as long as the program
  double bytes_per_second = 0;
  std::optional<double> spread;
};

// The roof of collectives of one kind between the ranks of a program: a call takes at least latency_ns +
// (bytes that each rank must send) / bytes_per_second.
struct NetworkCeiling {
  std::string collective;  // "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"
  std::string backend;     // "gloo", "nccl"
  std::int64_t ranks = 0;  // in the group that was measured
  double latency_ns = 0;
  double bytes_per_second = 0;  // the bus bandwidth of nccl-tests
  Provenance provenance;
  bool operator==(const NetworkCeiling&) const = default;
};

// Published facts of a device other than its roofs; 0 and "": not known.
struct CardFacts {
  std::string compute_capability;  // "8.9"; for AMD's cards the architecture, "gfx942"
  std::int64_t multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  double tdp_watts = 0;
  bool inline_ecc = false;           // its memory holds its error correction among the data
  std::string link;                  // to the other cards of a machine: "NVLink 4", "PCIe 4.0 x16"
  double link_bytes_per_second = 0;  // of it, in one direction
  bool operator==(const CardFacts&) const = default;
};

// A number of the prediction that holds for this device: docs/prediction.md names and explains them.
struct CalibratedNumber {
  std::string name;  // "product.overlap"
  double value = 0;
  bool operator==(const CalibratedNumber&) const = default;
};

// The errors of predictions with the fitted numbers, for kernels that were held out of the fit.
struct CalibratedClass {
  std::string name;                // of the class of ops
  std::int64_t kernels = 0;        // of different shapes that were measured
  double median_error = 0;         // of |predicted / measured - 1|
  double percentile_90 = 0;        // of the same error
  double median_error_before = 0;  // without the fit
  bool operator==(const CalibratedClass&) const = default;
};

// The numbers of the prediction fitted to measured kernels of the device, and the errors that remain.
struct Calibration {
  std::string source;  // what was measured, in words; "": the device was not calibrated
  std::vector<CalibratedNumber> numbers;
  std::vector<CalibratedClass> classes;
  bool operator==(const Calibration&) const = default;
};

// Called with a line of text for each thing that a measurement does.
using Progress = std::function<void(std::string_view)>;

namespace detail {

template <class Found>
std::optional<Found> copy_at(const Found* found) {
  return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace detail

struct Ceilings {
  std::string device;  // the device that was measured, in words
  std::vector<ComputeCeiling> compute;
  std::vector<MemoryCeiling> memory;  // from the smallest level to the largest
  BandwidthCurve curve = {};          // measured; its plateaus are the levels in `memory`
  std::vector<NetworkCeiling> network = {};
  CardFacts facts = {};
  Calibration calibration = {};
  // The share of the processors that other programs used during the measurement, if it was too large to trust the
  // roofs; else 0. Such roofs may be too low, and are not kept.
  double busy_share = 0;

  [[nodiscard]] bool empty() const { return compute.empty() && memory.empty(); }
  // Returns the roof of a dtype; null if it has none. Temporary ceilings return by value, here and below.
  [[nodiscard]] const ComputeCeiling* compute_for(DType dtype) const&;
  [[nodiscard]] std::optional<ComputeCeiling> compute_for(DType dtype) const&& {
    return detail::copy_at(compute_for(dtype));
  }
  // Returns the roof of the smallest level that holds that many bytes; null if no level does.
  [[nodiscard]] const MemoryCeiling* memory_for(std::int64_t working_set_bytes) const&;
  [[nodiscard]] std::optional<MemoryCeiling> memory_for(std::int64_t working_set_bytes) const&& {
    return detail::copy_at(memory_for(working_set_bytes));
  }
  // Returns the roof of traffic within that working set: the curve's bandwidth if there is a curve, else the bandwidth
  // of the smallest level that holds it; empty if there is neither.
  [[nodiscard]] std::optional<MemoryRoof> memory_roof(const MemoryTraffic& traffic,
                                                      std::int64_t working_set_bytes) const&;
  [[nodiscard]] std::optional<MemoryRoof> memory_roof(const MemoryTraffic& traffic,
                                                      std::int64_t working_set_bytes) const&&;
  // Returns the roof of traffic within its footprint.
  [[nodiscard]] std::optional<MemoryRoof> memory_roof(const MemoryTraffic& traffic) const& {
    return memory_roof(traffic, traffic.footprint_bytes());
  }
  [[nodiscard]] std::optional<MemoryRoof> memory_roof(const MemoryTraffic& traffic) const&& {
    return std::move(*this).memory_roof(traffic, traffic.footprint_bytes());
  }
  // Returns the roof of the level of that name; null if the ceilings lack it.
  [[nodiscard]] const MemoryCeiling* memory_level(std::string_view level) const&;
  [[nodiscard]] std::optional<MemoryCeiling> memory_level(std::string_view level) const&& {
    return detail::copy_at(memory_level(level));
  }

  // Measures the roofs of a device ("cpu", "cuda:0") with as many threads as torch uses now; takes at most twenty
  // seconds. `progress` also gets the notes on what was left out or looks odd. Throws InvalidArgument for a
  // device that cannot be measured.
  [[nodiscard]] static Ceilings measure(const std::string& device = "cpu", const Progress& progress = {});
  // Returns the published roofs of a GPU ("RTX 4090", "A100 SXM 80GB", or its driver's name for it): dense rates at
  // boost clocks, the cache that all of the chip shares where its bandwidth is known, and DRAM, each with its source.
  // Throws InvalidArgument for a card that is not known, naming those that are like it.
  [[nodiscard]] static Ceilings published(std::string_view name);
  // Returns the roofs in a file that save or `roofprof ceilings --json` wrote. Throws RuntimeError: one sentence
  // that names the file and says what is wrong with it.
  [[nodiscard]] static Ceilings load(const std::string& path);
  // Writes the file whole or not at all. Throws RuntimeError naming the path.
  void save(const std::string& path) const;

  bool operator==(const Ceilings&) const = default;
};

}  // namespace roofprof
