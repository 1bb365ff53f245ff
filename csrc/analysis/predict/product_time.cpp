#include "analysis/predict/product_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace roofprof {

namespace {

// The side of a tile of the output that share_of_waves() counts.
constexpr double kTile = 64;
constexpr double kAlignment = 8;  // elements that tensor cores take at once

// A tile of the output, which one multiprocessor computes. Libraries have more of them: these eight explain measured
// times as well as 23 did, and as well as with their sides swapped for tall outputs.
struct Tile {
  double rows;
  double width;
};
constexpr std::array<Tile, 8> kTiles = {
    {{16, 32}, {16, 128}, {32, 64}, {64, 64}, {64, 128}, {128, 128}, {64, 256}, {128, 256}}};
// A split of the inner dimension leaves each part at least as deep.
constexpr double kLeastDepth = 256;
// Between two uses of a layer's weights those of other layers pass through the cache: so many times their bytes.
constexpr double kLayers = 6;
// A working set is found in the cache up to this share of it, and from this share on not at all.
constexpr double kFits = 0.9;
constexpr double kOverflows = 1.25;
constexpr double kUsualMultiprocessors = 100;  // where they are not known

// Returns the share that comes from memory of what is used again after `bytes` have passed through the cache.
double missed(double bytes, double cache) {
  if (cache <= 0) return 1;
  return std::clamp((bytes / cache - kFits) / (kOverflows - kFits), 0.0, 1.0);
}

// Some cards' tensor cores run at a part of their architecture's rate, but get their operands as fast as the others':
// GeForce's at half of it. Returns that part.
double share_of_rate(const TargetDevice& device) {
  const auto* tensor = device.ceilings->compute_for(DType::fp16);
  const auto* vector = device.ceilings->compute_for(DType::fp32);
  const double full = architecture_of(device).product.of_vector;
  if (full <= 0 || tensor == nullptr || vector == nullptr || vector->operations_per_second <= 0) return 1;
  return std::min(1.0, tensor->operations_per_second / vector->operations_per_second / full);
}

double bytes_of_element(const OpFeatures& op) { return op.element_bytes > 0 ? op.element_bytes : 1; }  // of int8, else

// Returns the bytes that come from and go to main memory.
double missed_traffic(const OpFeatures& op, const TargetDevice& device) {
  const double elements = op.op == OpClass::linear ? std::max(op.batch, 1.0) * op.width * op.depth : 0;
  const double weights = std::min(elements * bytes_of_element(op), op.read_bytes);
  const double all = op.read_bytes + op.write_bytes;
  const double cache = architecture_of(device).product.cache * device.cache_bytes;
  return weights * missed(all + (kLayers - 1) * weights, cache) + (all - weights) * missed(all, cache);
}

// Computes a product's time on a device from what it moves and computes, and from the tiles that it is cut into.
class Product {
 public:
  Product(const OpFeatures& op, const TargetDevice& device, double at_peaks)
      : op_(op),
        numbers_(device.gpu->product),
        kernels_(architecture_of(device).product),
        processors_(device.multiprocessors > 0 ? device.multiprocessors : kUsualMultiprocessors),
        batch_(std::max(op.batch, 1.0)),
        tile_side_(numbers_.tile_side) {
    const auto& of_class = device.of_class(op.op);
    double share = of_class.of_peak * kernels_.of_peak;
    constexpr double kNearlyAll = 0.9;
    if (const double part = share_of_rate(device); part < kNearlyAll) {
      tile_side_ *= part;
      if (share < 1) share = std::min(share * numbers_.geforce, 1.0);
    }
    const auto* fp16 = device.ceilings->compute_for(DType::fp16);
    if (fp16 != nullptr && fp16->provenance.source != "published") {
      share = std::min(share, 1.0);  // what was measured as a roof is not exceeded
    }
    if (!is_aligned(op)) share *= numbers_.unaligned;
    // One multiprocessor takes this long for a multiply-add if all of them reach the rate together.
    seconds_per_mac_ = at_peaks * processors_ / (share * batch_ * op.rows * op.width * op.depth);
    constexpr double kHalf = 2;
    const bool odd = std::fmod(op.depth, 2) != 0 || std::fmod(op.width, 2) != 0;
    if (odd && op.element_bytes == kHalf) {
      seconds_per_mac_ = std::max(seconds_per_mac_, processors_ / (numbers_.odd_macs * device.cycles));
    }
    const double bandwidth = dram_bandwidth(of_class.of_bandwidth, device);
    memory_seconds_ = missed_traffic(op, device) / bandwidth;
    // A tile's outputs are written after its last step, while nothing of it is computed.
    output_seconds_ = numbers_.exposed_output * op.write_bytes / bandwidth;
    step_seconds_ = numbers_.byte_latency * bytes_of_element(op);
  }

  double seconds() const {
    Part best;
    for (const auto& tile : kTiles) {
      const double tiles = batch_ * std::ceil(op_.rows / tile.rows) * std::ceil(op_.width / tile.width);
      take_better(best, part(tile, tiles, 1));
      const double splits = std::min(std::floor(processors_ / tiles), std::floor(op_.depth / kLeastDepth));
      if (splits > 1) take_better(best, part(tile, tiles, splits));
    }
    return best.split + together(best.compute, memory_seconds_, numbers_.overlap);
  }

 private:
  // The times of one way to cut the product.
  struct Part {
    double compute = 0;
    double split = 0;
    double estimate = std::numeric_limits<double>::infinity();
  };
  static void take_better(Part& best, const Part& other) {
    if (other.estimate < best.estimate) best = other;
  }

  Part part(const Tile& tile, double tiles, double splits) const {
    const double depth = std::ceil(op_.depth / splits / kStep) * kStep;
    // A tile loads a row and a column for each step of its depth; small ones wait for that.
    const double macs = std::max(tile.rows * tile.width, (tile.rows + tile.width) / 2 * tile_side_);
    const double one = depth * std::max(macs * seconds_per_mac_, step_seconds_) + latency(tile, tiles * splits);
    const double waves = std::max(tiles * splits / processors_, 1.0);
    Part part;
    part.compute = output_seconds_ + one * std::lerp(waves, std::ceil(waves), kernels_.last_wave);
    if (splits > 1) part.split = numbers_.split;
    const auto [shorter, longer] = std::minmax(part.compute, memory_seconds_);
    part.estimate = longer > 0 ? longer + kBoth * shorter * shorter / longer + part.split : part.split;
    return part;
  }

  // Returns a tile's latency. In a batch of products, the small tiles that a multiprocessor holds wait at the same
  // time.
  double latency(const Tile& tile, double tiles) const {
    if (batch_ <= 1 || tiles <= processors_) return numbers_.tile_latency;
    constexpr double kAlone = 64 * 128;
    const double others = std::min(kAlone / (tile.rows * tile.width), tiles / processors_);
    return numbers_.tile_latency / std::clamp(others, 1.0, std::max(numbers_.batched_tiles, 1.0));
  }

  static constexpr double kStep = 32;    // of the depth
  static constexpr double kBoth = 0.31;  // what together() adds if both are as long: ways to cut are compared by this
  const OpFeatures& op_;
  const ProductParameters& numbers_;
  const ProductKernels& kernels_;
  double processors_;
  double batch_;
  double tile_side_;
  double seconds_per_mac_ = 0;
  double memory_seconds_ = 0;
  double output_seconds_ = 0;
  double step_seconds_ = 0;  // at least, for an element of the depth
};

// torch's Inductor copies operands into wider ones if that is faster (its pad_mm): both where the depth is not aligned,
// the right one alone where the width is not. Of the result the rest is not read.
double padded_seconds(const OpFeatures& op, const TargetDevice& device, double at_peaks) {
  const auto up = [](double size) { return std::ceil(size / kAlignment) * kAlignment; };
  OpFeatures padded = op;
  padded.depth = up(op.depth);
  padded.width = up(op.width);
  const double elements = std::max(op.batch, 1.0) * op.depth * op.width;
  const double right = std::min(elements * std::max(op.element_bytes, 1.0), op.read_bytes);
  const double copied = padded.depth != op.depth ? op.read_bytes : right;
  const double work = padded.depth * padded.width / (op.depth * op.width);
  const double bandwidth = dram_bandwidth(device.of_class(op.op).of_bandwidth, device);
  return Product(padded, device, at_peaks * work).seconds() + 2 * copied / bandwidth;
}

}  // namespace

bool is_aligned(const OpFeatures& op) {
  return std::fmod(op.depth, kAlignment) == 0 && std::fmod(op.width, kAlignment) == 0;
}

double share_of_waves(const OpFeatures& op, const TargetDevice& device) {
  if (device.multiprocessors <= 0) return 1;
  const double tiles = std::ceil(op.rows / kTile) * std::ceil(op.width / kTile) * std::max(op.batch, 1.0);
  const double waves = tiles / device.multiprocessors;
  return waves / std::ceil(waves);
}

double product_floor(const TargetDevice& device) { return architecture_of(device).product.launch; }

double product_misses(const OpFeatures& op, const TargetDevice& device) {
  const double bytes = op.read_bytes + op.write_bytes;
  const bool has_sizes = op.rows > 0 && op.width > 0 && op.depth > 0;
  return has_sizes && bytes > 0 ? missed_traffic(op, device) / bytes : 1;
}

double product_seconds(const OpFeatures& op, const TargetDevice& device) {
  const double at_peaks = seconds_at_peaks(op, device);
  if (op.rows > 0 && op.width > 0 && op.depth > 0 && at_peaks > 0) {
    const double seconds = Product(op, device, at_peaks).seconds();
    return op.pads && !is_aligned(op) ? std::min(seconds, padded_seconds(op, device, at_peaks)) : seconds;
  }
  const auto& of_class = device.of_class(op.op);
  const double bandwidth = dram_bandwidth(of_class.of_bandwidth, device);
  return together(of_class.of_peak > 0 ? at_peaks / of_class.of_peak : 0, (op.read_bytes + op.write_bytes) / bandwidth,
                  device.gpu->product.overlap);
}

}  // namespace roofprof
