#include "analysis/predict/attention_time.h"

#include <algorithm>
#include <cmath>

namespace roofprof {

namespace {

// Torch (2.5 and later) computes the scores in fp32, and moves them several times.
double unfused_seconds(const OpFeatures& op, const TargetDevice& device) {
  const double scores = op.batch * op.rows * op.width;
  constexpr double kFp32 = 4;
  const double wider = op.element_bytes > 0 ? kFp32 / op.element_bytes : 1;
  const double in_fp32 = wider * (op.read_bytes + op.write_bytes);
  return (scores * device.gpu->attention.bytes_per_score + 2 * in_fp32) / device.dram +
         operations_of(op) / (vector_peak(device) * device.of_class(op.op).of_peak);
}

constexpr double kBlock = 128;  // keys that are read at once

// The multiprocessors of a device, and what each does in a second.
struct Processors {
  bool serial = true;  // kind of kernels
  double count = 0;
  double clock = 0;
  double query_rows = 0;    // of a tile
  double tiles = 0;         // that share one, so that one waits while another computes
  double exponentials = 0;  // of one in a second
  double arithmetic = 0;    // fp32 operations of one
  double products = 0;      // operations of its tensor cores
  double cache = 0;         // bytes per second of the last cache for each
};

Processors processors_of(const OpFeatures& op, const TargetDevice& device) {
  const AchievedShare& facts = architecture_of(device);
  constexpr double kUsualClock = 1.9e9;         // where the number of multiprocessors is not known
  constexpr double kReserved = 28 * 1024;       // bytes of L1 that shared memory cannot have
  const double a_clock = 2 * facts.fp32_lanes;  // operations, each a multiplication and an addition
  Processors found;
  found.count = device.multiprocessors > 0 ? device.multiprocessors : std::max(device.cycles / kUsualClock, 1.0);
  found.clock = device.cycles / found.count;
  found.query_rows = facts.query_rows;
  found.exponentials = facts.exponentials * found.clock;
  found.arithmetic = a_clock * found.clock;
  const double at_peaks = seconds_at_peaks(op, device);
  found.products = at_peaks > 0 ? operations_of(op) / at_peaks / found.count : found.arithmetic;
  found.cache = device.cache_roof > 0 ? device.cache_roof / found.count : kCacheOfOne;
  constexpr double kSerialRows = 64;
  constexpr double kRowsOfHalf = 128;  // of a tile that is two halves
  found.serial = facts.query_rows <= kSerialRows;
  // A multiprocessor has as many tiles of serial kernels as fit in shared memory, each with blocks of keys and values.
  const double tile_bytes = 2 * op.depth * (facts.query_rows + 2 * kBlock);
  const double tiles = found.serial ? (facts.l1_bytes - kReserved) / tile_bytes : facts.query_rows / kRowsOfHalf;
  found.tiles = std::clamp(std::floor(tiles), 1.0, 2.0);
  return found;
}

const AttentionKernels& kernels_of(const Processors& on, const TargetDevice& device) {
  return on.serial ? device.gpu->attention.serial : device.gpu->attention.overlapped;
}

double root_of_squares(double a, double b) { return std::sqrt(a * a + b * b); }
double root_of_cubes(double a, double b, double c = 0) { return std::cbrt(a * a * a + b * b * b + c * c * c); }

// Returns the share of so many bytes that a call does not find in the last cache. What is used call after call stays
// there as long as all of it fits.
double misses_of(double bytes, const TargetDevice& device) {
  const double cache = device.gpu->attention.cache_share * device.cache_capacity;
  if (cache <= 0) return 1;
  const double ratio = bytes / cache;
  const double fourth = ratio * ratio * ratio * ratio;
  return fourth * fourth / (1 + fourth * fourth);
}

// Returns the seconds of all bytes from DRAM or the last cache.
double tensors_seconds(double bytes, double misses, const Processors& on, const TargetDevice& device) {
  const auto& numbers = device.gpu->attention;
  const double dram = dram_bandwidth(numbers.of_dram, device);
  return bytes * (misses / dram + (1 - misses) / (on.cache * on.count * numbers.of_cache));
}

// A query for each sequence: all heads that share a head of keys are one tile, and the keys are what takes time.
double decoding_seconds(const OpFeatures& op, const Processors& on, const TargetDevice& device) {
  const auto& numbers = device.gpu->attention;
  const auto& kernels = kernels_of(on, device);
  const double bytes = op.read_bytes + op.write_bytes;
  const double sequences = op.batch / op.heads;
  const double items = sequences * op.key_heads;
  const double of_query = 4 * op.depth * op.heads / op.key_heads;
  const double of_block = 4 * op.depth * std::min(op.width, kBlock);
  const double item = kernels.item_cycles / on.clock + (of_query + of_block) / (on.cache * numbers.tile_of_cache);
  const double misses = misses_of(bytes, device);
  const double work = items / (on.tiles * on.count) * item;
  const double tensors = tensors_seconds(bytes, misses, on, device);
  const double longest = bytes / items / numbers.head_bandwidth;
  // Few items split their keys, and a second kernel adds up the parts. The serial kernels get a copy of the queries in
  // which the heads of a head of keys are side by side.
  const bool splits = op.width > kBlock && items < on.count;
  const bool copies = on.serial && op.heads > op.key_heads && op.key_heads > 1 && sequences > 1;
  const double more = (splits ? 1 : 0) + (copies ? 1 : 0);
  return more * kernels.second_cycles / on.clock + misses * numbers.ramp + root_of_cubes(work, tensors, longest);
}

// Tiles of queries go through the blocks of keys that they see.
double prompt_seconds(const OpFeatures& op, const Processors& on, const TargetDevice& device) {
  const auto& numbers = device.gpu->attention;
  const auto& kernels = kernels_of(on, device);
  constexpr double kHopperRows = 128;  // whose kernels put the heads of a head of keys into one tile
  const double packed = on.query_rows == kHopperRows ? op.heads / op.key_heads : 1;
  // Keys of a block, as many as shared memory holds.
  constexpr double kSmallDepth = 64;
  constexpr double kMiddleDepth = 128;
  double block = kBlock;
  if (on.serial && op.depth <= kSmallDepth) block = 2 * kBlock;
  if (on.serial && op.depth > kMiddleDepth) block = kBlock / 2;
  const double tiles = std::ceil(op.rows * packed / on.query_rows);
  const double most = std::ceil(op.width / block);
  double blocks = most;
  if (op.visible < 1 && tiles > 1) {
    // A tile computes the keys that its last query sees through the causal mask.
    const double keys = std::min(op.visible * op.width + on.query_rows / packed / 2, op.width);
    blocks = std::clamp(keys / block + 0.5, 1.0, most);
  }
  const double scores = on.query_rows * block;
  const double macs_of_score = op.macs / std::max(op.batch * op.rows * op.width, 1.0);
  const double products = 2 * macs_of_score * scores / (on.products * kernels.of_peak);
  const double softmax = scores / on.exponentials + scores * kernels.score_operations / on.arithmetic;
  const double element = op.element_bytes > 0 ? op.element_bytes : 2;
  const double reading = 2 * block * op.depth * element / (on.cache * numbers.tile_of_cache);
  const double of_block = (on.serial ? products + softmax : root_of_squares(products, softmax)) + reading;
  const double rows = std::min(on.query_rows, op.rows * packed);
  const double of_tile =
      kernels.tile_cycles / on.clock / on.tiles + 2 * rows * op.depth * element / (on.cache * numbers.tile_of_cache);
  const double all = (blocks * of_block + of_tile) * tiles * op.batch / packed / on.count;
  const double longest = most * of_block + of_tile;
  const double bytes = op.read_bytes + op.write_bytes;
  // An engine's operator also writes keys and values, which it copies to its cache.
  const double misses = misses_of(bytes, device);
  const double tensors = tensors_seconds(bytes, misses, on, device);
  const double copied = std::max(op.write_bytes - element * op.batch * op.rows * op.depth, 0.0);
  return root_of_cubes(all + kernels.tail * longest, tensors) +
         tensors_seconds(2 * copied, misses, on, device) / numbers.copies;
}

}  // namespace

double attention_seconds(const OpFeatures& op, const TargetDevice& device) {
  if (op.op == OpClass::unfused_attention) return unfused_seconds(op, device);
  if (op.heads <= 0 || op.key_heads <= 0 || op.batch <= 0 || op.width <= 0) {
    return seconds_at_peaks(op, device) + traffic_seconds(op.read_bytes, op.write_bytes, 1, device);
  }
  const Processors on = processors_of(op, device);
  return op.rows > 1 ? prompt_seconds(op, on, device) : decoding_seconds(op, on, device);
}

double attention_misses(const OpFeatures& op, const TargetDevice& device) {
  if (op.op == OpClass::unfused_attention) return 1;
  const double bytes = op.read_bytes + op.write_bytes;
  if (op.heads <= 0 || op.key_heads <= 0 || op.batch <= 0 || op.width <= 0) return streaming_misses(bytes, device);
  return misses_of(bytes, device);
}

double attention_floor(const OpFeatures& op, const TargetDevice& device) {
  if (op.op == OpClass::unfused_attention) return device.gpu->kernel_floor;
  const Processors on = processors_of(op, device);
  const double decoding = op.rows > 1 ? 0 : kernels_of(on, device).decoding_cycles;
  return architecture_of(device).attention_launch + decoding / on.clock;
}

}  // namespace roofprof
