#include "analysis/predict/vector_product_time.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace roofprof {

namespace {

// The sides of the tiles of outputs that a block of a kernel computes. Libraries have oblong ones as well, which change
// nothing that can be measured.
constexpr std::array<double, 3> kTileSides = {128, 64, 32};
// A block takes this much of the inner dimension at least where several share it.
constexpr double kLeastSharedDepth = 512;

double operations_in(const OpFeatures& op, DType dtype) { return op.operations[static_cast<std::size_t>(dtype)]; }

// A product's time and work in tiles, relative to its own work at the best rate of the largest tiles.
struct Tiled {
  double time = 1;
  double work = 1;  // with the parts of tiles that hang over the output's edges
};

// Returns the time in tiles of that side: the multiprocessors work off their tiles at the same time, in waves of which
// the last is as long as a full one.
Tiled with_tiles(double side, const OpFeatures& op, const TargetDevice& device) {
  const auto& numbers = device.gpu->vector_product;
  const double tiles = std::ceil(op.rows / side) * std::ceil(op.width / side) * std::max(op.batch, 1.0);
  const double outputs = op.rows * op.width * std::max(op.batch, 1.0);
  const double work = tiles * side * side / outputs;
  double idle = 1;
  if (device.multiprocessors > 0) {
    double waves = std::ceil(tiles / device.multiprocessors);
    // Few tiles: several blocks share the depth of each.
    const double shares = std::min(std::floor(device.multiprocessors / tiles), op.depth / kLeastSharedDepth);
    if (shares > 1) waves = 1 / shares;
    idle = waves * device.multiprocessors / tiles;
  }
  const double loads = 1 + 2 * numbers.load * (1 / side - 1 / kTileSides.front());
  return {.time = work * idle * loads * (1 + numbers.prologue / op.depth), .work = work};
}

Tiled best_tiles(const OpFeatures& op, const TargetDevice& device) {
  if (op.rows <= 0 || op.width <= 0 || op.depth <= 0) return {};
  double least = 0;
  if (op.batch > 1 && device.achieved != nullptr) {
    // No outputs below 64 were measured: tiles twice as large are taken to be the largest waste.
    least = std::min(device.achieved->batched_tile, 2 * std::min(op.rows, op.width));
  }
  Tiled best = with_tiles(kTileSides.front(), op, device);
  for (std::size_t i = 1; i < kTileSides.size() && kTileSides[i] >= least; ++i) {
    const Tiled tiled = with_tiles(kTileSides[i], op, device);
    if (tiled.time < best.time) best = tiled;
  }
  // Kernels for vectors have no tiles.
  const double vectors = share_of_vectors(op);
  return {.time = std::lerp(best.time, 1.0, vectors), .work = std::lerp(best.work, 1.0, vectors)};
}

struct Bounds {
  double compute = 0;  // seconds
  double power = 0;    // 0: power does not limit it
};

Bounds bounds_of(const OpFeatures& op, const TargetDevice& device) {
  const Tiled tiled = best_tiles(op, device);
  Bounds bounds{.compute = seconds_at_peaks(op, device) * tiled.time};
  const auto* peak = device.ceilings->compute_for(DType::fp32);
  if (device.achieved == nullptr || peak == nullptr || peak->provenance.source != "published") return bounds;
  bounds.compute /= device.achieved->vector;
  const double watts = device.ceilings->facts.tdp_watts;
  if (watts <= 0) return bounds;
  // An operation of fp64 takes twice the energy.
  const double operations = operations_in(op, DType::fp32) + 2 * operations_in(op, DType::fp64);
  const double picojoules = device.achieved->vector_picojoules * operations * tiled.work +
                            device.achieved->dram_picojoules * (op.read_bytes + op.write_bytes);
  const double factor = device.peak[static_cast<std::size_t>(DType::fp32)] / peak->operations_per_second;
  bounds.power = picojoules * kJoulesPerPicojoule / (watts * factor);
  return bounds;
}

}  // namespace

bool is_vector_product(const OpFeatures& op) {
  return operations_in(op, DType::fp32) + operations_in(op, DType::fp64) > op.macs;
}

double vector_product_seconds(const OpFeatures& op, const TargetDevice& device) {
  const auto bounds = bounds_of(op, device);
  return std::max({bounds.compute, bounds.power, traffic_seconds(op.read_bytes, op.write_bytes, 1, device)});
}

Margins vector_product_margins(const OpFeatures& op, const TargetDevice& device) {
  const auto& numbers = device.gpu->vector_product;
  const auto bounds = bounds_of(op, device);
  if (bounds.power <= bounds.compute) return {.low = numbers.low, .high = numbers.high};
  const double wider = std::pow(bounds.power / bounds.compute, numbers.unsteady);
  return {.low = numbers.low / wider, .high = numbers.high * std::sqrt(wider)};
}

}  // namespace roofprof
