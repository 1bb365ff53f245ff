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
constexpr double kJoulesPerPicojoule = 1e-12;

double operations_in(const OpFeatures& op, DType dtype) { return op.operations[static_cast<std::size_t>(dtype)]; }

// What tiles make of a product, relative to its own work at the best rate of the largest tiles.
struct Tiled {
  double time = 1;
  double work = 1;  // with the parts of tiles that hang over the output's edges
};

// The time of one side of tiles: the multiprocessors work off their tiles at the same time, in waves of which the last
// is as long as a full one.
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
  const double least = op.batch > 1 && device.achieved != nullptr ? device.achieved->batched_tile : 0;
  Tiled best = with_tiles(kTileSides.front(), op, device);
  for (std::size_t i = 1; i < kTileSides.size() && kTileSides[i] >= least; ++i) {
    const Tiled tiled = with_tiles(kTileSides[i], op, device);
    if (tiled.time < best.time) best = tiled;
  }
  // Kernels for vectors have no tiles.
  const double vectors = share_of_vectors(op);
  return {.time = std::lerp(best.time, 1.0, vectors), .work = std::lerp(best.work, 1.0, vectors)};
}

}  // namespace

bool is_vector_product(const OpFeatures& op) {
  return operations_in(op, DType::fp32) + operations_in(op, DType::fp64) > op.macs;
}

double vector_product_seconds(const OpFeatures& op, const TargetDevice& device) {
  const Tiled tiled = best_tiles(op, device);
  double compute = seconds_at_peaks(op, device) * tiled.time;
  double power = 0;
  const auto* peak = device.ceilings->compute_for(DType::fp32);
  if (device.achieved != nullptr && peak != nullptr && peak->provenance.source == "published") {
    compute /= device.achieved->vector;
    // An operation of fp64 takes twice the energy.
    const double operations = operations_in(op, DType::fp32) + 2 * operations_in(op, DType::fp64);
    const double picojoules = device.achieved->vector_picojoules * operations * tiled.work +
                              device.achieved->dram_picojoules * (op.read_bytes + op.write_bytes);
    const double watts = device.ceilings->facts.tdp_watts;
    const double factor = device.peak[static_cast<std::size_t>(DType::fp32)] / peak->operations_per_second;
    if (watts > 0) power = picojoules * kJoulesPerPicojoule / (watts * factor);
  }
  return std::max({compute, power, traffic_seconds(op.read_bytes, op.write_bytes, 1, device)});
}

}  // namespace roofprof
