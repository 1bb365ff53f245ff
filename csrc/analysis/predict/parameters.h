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
  // Times of 80% of whole models are between low and high times the predicted one, each class by its share.
  double low = 1;
  double high = 1;
};

// The sizes at which half of the efficiency is lost: elements of a contraction's inner dimension (depth), and outputs
// per row (width).
struct HalfSizes {
  double depth = 0;
  double width = 0;
};

// The parameters of a kind of device, "gpu" or "cpu".
struct KindParameters {
  std::vector<ClassParameters> classes;
  HalfSizes product;  // of matrix products and attention
  HalfSizes convolution;
  double unaligned = 1;           // share of the peak if depth or width is not a multiple of 8 elements (16-bit types)
  double depthwise_exponent = 0;  // time per FLOP of a depthwise kernel goes with (its area / 9) to this power
  double overlap = 2;      // p of (compute^p + memory^p)^(1/p): 1: one after the other; large: the longer of the two
  double cache_share = 0;  // of the last cache; a tensor of b bytes misses it with b / (b + share x size)
  double permuted = 1;     // what a view has permuted is read so many times slower where no product is made of it
  double op_floor = 0;     // seconds that the smallest op takes
  double convolution_floor =
      0;                     // seconds that the smallest convolution takes, whose weights are cast and reordered, too
  double plane_seconds = 0;  // interpolation: a thread goes through all planes of an output pixel, so long for each
  // An attention that no fused kernel takes is computed in fp32, its scores moved so many times (bytes per score).
  double bytes_per_score = 0;
};

// The shares of the published peaks that large kernels achieve on cards of one compute capability.
struct AchievedShare {
  std::string compute_capability;
  double dram = 1;                 // of the published bandwidth
  double tensor = 1;               // of the published rate, where power does not limit it
  double picojoules_per_flop = 0;  // at the published clock and rate, fp16 or bf16; 0: power does not limit it
  double fp16_per_fp32 = 1;        // fp16's rate by fp32's, for cards of which one is not published
  double cache = 1;                // of the last cache; 0: what ops find there is not known
  std::string source;
};

struct PredictionParameters {
  std::vector<AchievedShare> achieved;
  KindParameters gpu;
  KindParameters cpu;

  // The class's own; found once for all.
  static const PredictionParameters& shipped();
  // Returns the parameters in the text of such a file. Throws JsonError if the text is not one, std::invalid_argument
  // if it lacks a class.
  static PredictionParameters parsed(std::string_view text);
};

const ClassParameters& parameters_of(const KindParameters& kind, OpClass op);

// The file.
extern const std::string_view kPredictionParameters;

template <class Visitor>
void for_each_member(Of<ClassParameters>, Visitor&& visit) {
  visit("name", &ClassParameters::name, Written::always);
  visit("of_peak", &ClassParameters::of_peak, Written::always);
  visit("of_bandwidth", &ClassParameters::of_bandwidth, Written::always);
  visit("low", &ClassParameters::low, Written::always);
  visit("high", &ClassParameters::high, Written::always);
}

template <class Visitor>
void for_each_member(Of<HalfSizes>, Visitor&& visit) {
  visit("depth", &HalfSizes::depth, Written::always);
  visit("width", &HalfSizes::width, Written::always);
}

template <class Visitor>
void for_each_member(Of<KindParameters>, Visitor&& visit) {
  visit("classes", &KindParameters::classes, Written::always);
  visit("product", &KindParameters::product, Written::always);
  visit("convolution", &KindParameters::convolution, Written::always);
  visit("unaligned", &KindParameters::unaligned, Written::always);
  visit("depthwise_exponent", &KindParameters::depthwise_exponent, Written::always);
  visit("overlap", &KindParameters::overlap, Written::always);
  visit("cache_share", &KindParameters::cache_share, Written::always);
  visit("permuted", &KindParameters::permuted, Written::always);
  visit("op_floor", &KindParameters::op_floor, Written::always);
  visit("convolution_floor", &KindParameters::convolution_floor, Written::always);
  visit("plane_seconds", &KindParameters::plane_seconds, Written::always);
  visit("bytes_per_score", &KindParameters::bytes_per_score, Written::always);
}

template <class Visitor>
void for_each_member(Of<AchievedShare>, Visitor&& visit) {
  visit("compute_capability", &AchievedShare::compute_capability, Written::always);
  visit("dram", &AchievedShare::dram, Written::always);
  visit("tensor", &AchievedShare::tensor, Written::always);
  visit("picojoules_per_flop", &AchievedShare::picojoules_per_flop, Written::always);
  visit("fp16_per_fp32", &AchievedShare::fp16_per_fp32, Written::always);
  visit("cache", &AchievedShare::cache, Written::unless_default);
  visit("source", &AchievedShare::source, Written::always);
}

template <class Visitor>
void for_each_member(Of<PredictionParameters>, Visitor&& visit) {
  visit("achieved", &PredictionParameters::achieved, Written::always);
  visit("gpu", &PredictionParameters::gpu, Written::always);
  visit("cpu", &PredictionParameters::cpu, Written::always);
}

}  // namespace roofprof
