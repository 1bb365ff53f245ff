#pragma once
// What the prediction sees of an op: its class, the work of one call, and what of its shapes matters.

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/predict/op_class.h"
#include "roofprof/prediction.h"

namespace roofprof {

struct OpFeatures {
  OpClass op = OpClass::other;
  double calls = 0;
  std::array<double, kDTypeCount> operations{};  // of one call
  double macs = 0;                               // likewise
  double read_bytes = 0;                         // likewise, those of the op itself
  double write_bytes = 0;
  double updated_bytes = 0;
  double cast_bytes = 0;  // read and written by autocast's casts before it
  // Of contractions; 0: not known. rows x depth times depth x width, `batch` times over.
  double batch = 1;
  double rows = 0;
  double width = 0;
  double depth = 0;
  double kernel_area = 0;  // of convolutions
  double planes = 0;       // of interpolation: batch x channels
  bool after_permutation = false;
  double input_elements = 0;
  double element_bytes = 0;  // of the type that it is computed in; 0: not known
  // Worth no time: views, and the copy that a fused attention saves by the order in which it writes its heads.
  bool is_free = false;
  bool is_known = true;   // false: nothing is known of its work
  bool in_chain = false;  // it is part of a fused kernel
  bool fused = false;     // into the kernel of the op before it: no launch of its own
};

enum class Fusion : std::uint8_t {
  none,    // eager: every op reads and writes
  chains,  // compiled: elementwise ops, norms and reductions that follow each other are one kernel
};

struct FeatureOptions {
  bool autocast = true;  // of what was counted in fp16 or bf16
  Fusion fusion = Fusion::none;
};

// One for each of `data.ops`.
std::vector<OpFeatures> features_of(const ProfileData& data, const FeatureOptions& options);

// Of what the options of a prediction ask for, on a GPU or a CPU.
FeatureOptions feature_options(const ProfileData& data, const PredictionOptions& options, bool on_gpu);

// Whether it was counted while autocast was on: then nothing is left to add.
bool counted_under_autocast(const ProfileData& data);

}  // namespace roofprof
