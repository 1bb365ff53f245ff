#pragma once
// The numbers of the prediction, each with a meaning: python/roofprof/data/prediction.json, which the build puts into
// the library. docs/prediction.md says how they were found.

#include <string>
#include <string_view>
#include <vector>

#include "analysis/predict/op_class.h"
#include "core/member_list.h"

namespace roofprof {

// The parameters of one class of ops, relative to what the device achieves at its best.
struct ClassParameters {
  std::string name;         // as kOpClassNames has it
  double of_peak = 1;       // share of the peak rate that large, well-shaped ops reach; 0: arithmetic takes no time
  double of_bandwidth = 1;  // share of the bandwidth that such ops reach
  // Times of 80% of the kernels are between low and high times the predicted one.
  double low = 1;
  double high = 1;
};

const ClassParameters& parameters_of(const std::vector<ClassParameters>& classes, OpClass op);

// The sizes at which half of the efficiency is lost: elements of a contraction's inner dimension (depth), and outputs
// per row (width).
struct HalfSizes {
  double depth = 0;
  double width = 0;
};

// ---- The numbers of each kind of kernel on a GPU

// Matrix products on tensor cores: a multiprocessor computes one tile of the output after the other.
struct ProductParameters {
  double tile_side = 0;       // outputs: tiles with a smaller side wait for their operands
  double tile_latency = 0;    // seconds from a tile's first load to its first arithmetic, and from the last to its end
  double byte_latency = 0;    // seconds per byte of a row's depth, at least: steps of one tile wait for each other
  double split = 0;           // seconds to sum what parts of a split inner dimension give
  double exposed_output = 0;  // of the time to write the output, while nothing is computed
  double overlap = 2;         // as of all kernels
  double unaligned = 1;       // share of the peak if depth or width is not a multiple of 8 elements
  // Multiply-adds of one multiprocessor in a clock, at most, in half where depth or width is odd: elements are loaded
  // one by one.
  double odd_macs = 0;
  double geforce = 1;        // times the rate of cards whose tensor cores have a part of their architecture's rate
  double batched_tiles = 1;  // small ones that a multiprocessor computes at once in a batch of products
};

// Matrix products in fp32 and fp64: a multiprocessor computes the output in square tiles of 128, 64 or 32.
struct VectorProductParameters {
  double load = 0;      // multiply-adds in whose time a block loads one element for one row or column of its tile
  double prologue = 0;  // elements of depth in whose time a tile is begun and written
  // Limits as in ClassParameters. Where power limits the rate to 1/x of the arithmetic's, the clock is unsteady: low is
  // divided by x^unsteady, and high multiplied by its square root.
  double low = 1;
  double high = 1;
  double unsteady = 0;
};

// Fused kernels of one design. Times of latency are in clock cycles.
struct AttentionKernels {
  double of_peak = 1;           // share of the achieved peak that the products reach
  double score_operations = 0;  // of fp32 for each score, besides its exponential
  double tile_cycles = 0;       // of a tile of queries, besides its arithmetic
  double item_cycles = 0;       // of the only query of a sequence for one head of keys, besides its bytes
  double tail = 0;              // share of the longest tile's time in which others do not fill the device
  double decoding_cycles = 0;   // of a call that decodes, besides its items
  double second_cycles = 0;     // of one more kernel: the one that adds up parts, a copy of the queries
};

struct AttentionParameters {
  // An attention that no fused kernel takes is computed in fp32, its scores moved so many times (bytes per score).
  double bytes_per_score = 0;
  double of_dram = 1;           // share of the achieved bandwidth at which tensors come from DRAM
  double of_cache = 1;          // and of the last cache's, at which they come from there
  double copies = 1;            // share of both at which new keys and values are copied to an engine's cache
  double tile_of_cache = 1;     // and of that at which tiles read keys and values
  double cache_share = 1;       // of the last cache: tensors up to that size stay in it from call to call
  double ramp = 0;              // seconds until DRAM is as fast as it gets
  double head_bandwidth = 0;    // bytes per second at most for one head of keys of one sequence
  AttentionKernels serial;      // compute a block's products and its softmax in turn: FlashAttention 2
  AttentionKernels overlapped;  // at the same time: FlashAttention 3, TensorRT-LLM's and cuDNN's of Blackwell
};

// The time of convolutions on tensor cores that find their channels last in memory, as a share of that of other ones,
// whose tensors are reordered first and afterwards.
struct ChannelsLast {
  double spatial = 1;
  double pointwise = 1;
  double grouped = 1;
  double depthwise = 1;
  double stem = 1;
};

struct ConvolutionParameters {
  double depth = 0;  // half sizes
  double width = 0;
  double unaligned = 1;           // as of products
  double depthwise_exponent = 0;  // time per FLOP of a depthwise kernel goes with (its area / 9) to this power
  double floor = 0;               // seconds that the smallest takes, whose weights are cast and reordered, too
  ChannelsLast channels_last;
};

struct StreamingParameters {
  // An op whose tensors have together this share of the last cache finds and leaves half of their bytes there.
  double cache_share = 0;
  double of_cache_bandwidth = 1;  // the share of the last cache's bandwidth with which it gives them
  // Thread instructions per element of layer and RMS norms, of softmax of short rows, and of long rows.
  double norm_instructions = 0;
  double short_softmax_instructions = 0;
  double long_softmax_instructions = 0;
  // Kernels that read a row again read half of it from DRAM where the rows at work fill this share of the caches.
  double row_share = 0;
  // And per element that a kernel finds by its index in each dimension: of what is permuted or broadcast, of cat.
  double index_instructions = 0;
  double concatenation_instructions = 0;
  double permuted = 1;       // what a view has permuted is read so many times slower where no product is made of it
  double plane_seconds = 0;  // interpolation: a thread goes through all planes of an output pixel, so long for each
};

// The host's times to launch ops in eager mode.
struct HostParameters {
  double op_seconds = 0;    // of an op that launches kernels
  double view_seconds = 0;  // of one that only makes a view
};

struct GpuParameters {
  std::vector<ClassParameters> classes;
  double overlap = 2;       // p of (compute^p + memory^p)^(1/p): 1: one after the other; large: the longer of the two
  double kernel_floor = 0;  // seconds that the smallest kernel takes
  double inline_ecc = 1;    // share of the bandwidth that cards keep whose memory holds its ECC among the data
  ProductParameters product;
  VectorProductParameters vector_product;
  AttentionParameters attention;
  ConvolutionParameters convolution;
  StreamingParameters streaming;
  HostParameters host;
};

// ---- The numbers of CPUs

struct CpuParameters {
  std::vector<ClassParameters> classes;
  HalfSizes product;  // of matrix products and attention
  HalfSizes convolution;
  double overlap = 2;            // as of GPUs
  double cache_share = 0;        // as of GPUs
  double op_floor = 0;           // seconds that the smallest op takes
  double convolution_floor = 0;  // seconds that the smallest convolution takes
};

// ---- The numbers of collectives between the GPUs of a machine

struct CollectiveParameters {
  double launch = 0;     // seconds that the smallest collective takes before its first step
  double step = 0;       // seconds of each step from rank to rank
  double of_fabric = 1;  // share of the rate of NVLink or Infinity Fabric that large ones reach
  double of_pcie = 1;    // share of the rate of PCIe that two ranks reach; more ranks share it
  double of_memory = 1;  // share of the memory's bandwidth at which a rank copies its own part
  // A ring sends its data in pieces, larger ones where there is more to send: the first one takes so much longer, half
  // of it where so many bytes leave a rank.
  double ring_filling = 0;
  double ring_bytes = 0;
  double direct_filling = 0;  // of an all_to_all, in which each rank sends to each other
  double direct_bytes = 0;
  // 80% of times are between low and high times the predicted one.
  double low = 1;
  double high = 1;
};

// ---- The numbers of architectures

// The libraries' kernels for products on an architecture.
struct ProductKernels {
  double launch = 2.5e-6;  // seconds of a kernel that does nothing, between two others
  double of_peak = 1;      // of the achieved peak
  double last_wave = 0.5;  // 1: a last wave of few tiles takes as long as a full one; 0: tiles are shared out evenly
  double cache = 0.2;      // of the last cache: what its parts do not hold twice
  double of_vector = 0;    // fp16's rate by fp32's where no card is held back; 0: not known
};

// The shares of the published peaks that large kernels achieve on cards of one compute capability.
struct AchievedShare {
  std::string compute_capability;
  double dram = 1;                 // of the published bandwidth
  double tensor = 1;               // of the published rate, where power does not limit it
  double picojoules_per_flop = 0;  // at the published clock and rate, fp16 or bf16; 0: power does not limit it
  double fp16_per_fp32 = 1;        // fp16's rate by fp32's, for cards of which one is not published
  double cache = 1;                // of the last cache; 0: what ops find there is not known
  ProductKernels product = {};
  // Products in fp32: the share of the published rate where power does not limit it, the energy per FLOP and per byte
  // of DRAM under full load, and the smallest side of a tile that the library takes for a batch of them.
  double vector = 1;
  double vector_picojoules = 0;  // 0: power does not limit it
  double dram_picojoules = 0;
  double batched_tile = 0;
  // Published facts of one multiprocessor, and in how many parts the L2 is split whose lines each part may hold.
  double fp32_lanes = 128;
  double threads = 2048;
  double l1_bytes = 131072;
  double l2_parts = 1;
  double exponentials = 16;        // in a clock
  double query_rows = 64;          // of the tiles of its attention kernels; above 64 they are the overlapped ones
  double attention_launch = 8e-6;  // seconds of the smallest attention
  double link_latency = 1;         // times the latencies of collectives
  double switch_reduction = 1;     // an all_reduce of eight ranks or more is so many times as fast: the switch adds up
  // Convolutions take so many times as long as their classes say: in 16 bits with the channels first, where the order
  // is changed for the kernel; in fp32; and those of groups, besides. Those of few channels do not.
  double channels_first = 1;
  double fp32_convolution = 1;
  double grouped_convolution = 1;
  std::string source;
};

// Returns what is known of an architecture, or what is usual where that is null.
const AchievedShare& or_usual(const AchievedShare* achieved);

// Sets a number by its name: "product.overlap" for a member of GpuParameters, "linear.of_bandwidth" for a class's,
// "achieved.dram" for an architecture's. Throws std::invalid_argument for any other name.
void set_number(std::string_view name, double value, GpuParameters& gpu, AchievedShare& achieved);

struct PredictionParameters {
  // The share of the squared error that all kernels of a prediction have in common, which does not average out.
  double common_error = 1;
  std::vector<AchievedShare> achieved;
  GpuParameters gpu;
  CpuParameters cpu;
  CollectiveParameters collectives;

  // Returns what is known of an architecture; null: nothing is.
  const AchievedShare* achieved_on(std::string_view compute_capability) const;

  // The class's own; found once for all.
  static const PredictionParameters& shipped();
  // Returns the parameters in the text of such a file. Throws JsonError if the text is not one, std::invalid_argument
  // if it lacks a class.
  static PredictionParameters parsed(std::string_view text);
};

// The file.
extern const std::string_view kPredictionParameters;

ROOFPROF_MEMBERS(ClassParameters, ALWAYS(name, of_peak, of_bandwidth, low, high))
ROOFPROF_MEMBERS(HalfSizes, ALWAYS(depth, width))
ROOFPROF_MEMBERS(ProductParameters, ALWAYS(tile_side, tile_latency, byte_latency, split, exposed_output, overlap,
                                           unaligned, odd_macs, geforce, batched_tiles))
ROOFPROF_MEMBERS(VectorProductParameters, ALWAYS(load, prologue, low, high, unsteady))
ROOFPROF_MEMBERS(AttentionKernels,
                 ALWAYS(of_peak, score_operations, tile_cycles, item_cycles, tail, decoding_cycles, second_cycles))
ROOFPROF_MEMBERS(AttentionParameters, ALWAYS(bytes_per_score, of_dram, of_cache, copies, tile_of_cache, cache_share,
                                             ramp, head_bandwidth, serial, overlapped))
ROOFPROF_MEMBERS(ChannelsLast, ALWAYS(spatial, pointwise, grouped, depthwise, stem))
ROOFPROF_MEMBERS(ConvolutionParameters, ALWAYS(depth, width, unaligned, depthwise_exponent, floor, channels_last))
ROOFPROF_MEMBERS(StreamingParameters, ALWAYS(cache_share, of_cache_bandwidth, norm_instructions,
                                             short_softmax_instructions, long_softmax_instructions, row_share,
                                             index_instructions, concatenation_instructions, permuted, plane_seconds))
ROOFPROF_MEMBERS(HostParameters, ALWAYS(op_seconds, view_seconds))
ROOFPROF_MEMBERS(GpuParameters, ALWAYS(classes, overlap, kernel_floor, inline_ecc, product, vector_product, attention,
                                       convolution, streaming, host))
ROOFPROF_MEMBERS(CpuParameters,
                 ALWAYS(classes, product, convolution, overlap, cache_share, op_floor, convolution_floor))
ROOFPROF_MEMBERS(CollectiveParameters, ALWAYS(launch, step, of_fabric, of_pcie, of_memory, ring_filling, ring_bytes,
                                              direct_filling, direct_bytes, low, high))
ROOFPROF_MEMBERS(ProductKernels, ALWAYS(launch, of_peak, last_wave, cache, of_vector))
ROOFPROF_MEMBERS(AchievedShare, ALWAYS(compute_capability, dram, tensor, picojoules_per_flop, fp16_per_fp32),
                 UNLESS_DEFAULT(cache), ALWAYS(product, vector, vector_picojoules, dram_picojoules, batched_tile),
                 UNLESS_DEFAULT(fp32_lanes, threads, l1_bytes, l2_parts, exponentials), ALWAYS(attention_launch),
                 UNLESS_DEFAULT(query_rows, link_latency, switch_reduction, channels_first, fp32_convolution,
                                grouped_convolution),
                 ALWAYS(source))
ROOFPROF_MEMBERS(PredictionParameters, ALWAYS(common_error, achieved, gpu, cpu, collectives))

}  // namespace roofprof
