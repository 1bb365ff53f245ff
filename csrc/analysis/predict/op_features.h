#pragma once
// The features of ops that the prediction reads, and what torch.autocast changes in them.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/predict/op_class.h"
#include "roofprof/prediction.h"

namespace roofprof {

// The bytes of one call under autocast; the op's own replace those that were counted.
struct AutocastBytes {
  double read = 0;
  double write = 0;
  double casts = 0;  // read and written by casts before it, without those of parameters, which are cast once
};

// Finds what torch.autocast in fp16 or bf16 adds to a model that was counted in that type: its parameters stay in fp32,
// and so does what is computed with them elementwise; matrix products cast it back. A profile does not say which tensor
// goes where, so the types follow the ops in the order in which they first ran, by the sizes of tensors. Norms are
// assumed to run in the narrow type: measurements of RTX 4090 agree with that, though torch's own list has them in fp32
// (docs/prediction.md).
class AutocastFlow {
 public:
  // Returns the bytes of the next op, which was counted with `read` and `write` for one call. Must be asked for every
  // op that is not free.
  AutocastBytes next(const OpBucket& bucket, OpClass op, const std::vector<Shape>& shapes, double read, double write);

 private:
  struct Tensor {
    std::int64_t elements = 0;
    bool wide = false;  // in fp32
  };
  std::optional<bool> is_wide(std::int64_t elements) const;
  bool first_was_wide(std::int64_t elements) const;
  AutocastBytes product(OpClass op, const std::vector<std::int64_t>& sizes, double read, double write);
  AutocastBytes in_fp32(std::string_view name, const std::vector<std::int64_t>& sizes, double read, double write);
  AutocastBytes promoted(const std::vector<std::int64_t>& sizes, bool in_place, bool is_sum, double read, double write);
  AutocastBytes concatenated(const std::vector<std::int64_t>& sizes, double read, double write);

  std::unordered_map<std::int64_t, bool> latest_;    // by elements: whether the latest such tensor is in fp32
  std::unordered_map<std::int64_t, bool> first_;     // the first one
  std::unordered_map<std::int64_t, bool> residual_;  // the latest sum, which the next sum adds to
  Tensor last_;                                      // what the last op made
  std::int64_t output_ = 0;
  bool output_is_wide_ = false;
};

// The features of an op: its class, the work of one call, and the sizes that matter.
struct OpFeatures {
  OpClass op = OpClass::other;
  double calls = 0;
  std::array<double, kDTypeCount> operations{};  // of one call
  double macs = 0;                               // of one call
  double read_bytes = 0;                         // of one call, those of the op itself
  double write_bytes = 0;
  double updated_bytes = 0;
  double link_bytes = 0;  // between host and device
  double cast_bytes = 0;  // read and written by autocast's casts before it
  // The sizes of a contraction, rows x depth times depth x width, `batch` times over; of a layer norm or a softmax,
  // rows of `width` elements. 0: not known.
  double batch = 1;
  double rows = 0;
  double width = 0;
  double depth = 0;
  double kernel_area = 0;  // of convolutions
  // The sizes of attention besides depth, rows (queries of a sequence), width (its keys) and batch (sequences x heads).
  double heads = 0;      // of queries; 0: not known
  double key_heads = 0;  // of keys
  double visible = 1;    // share of the scores that the causal mask leaves
  double planes = 0;     // of interpolation: batch x channels
  bool after_permutation = false;
  double indexed_elements = 0;  // that the kernel finds by their index in each dimension
  double input_elements = 0;
  double element_bytes = 0;  // of the type that it is computed in; 0: not known
  // It takes no time: a view, or the copy that a fused attention saves by the order in which it writes its heads.
  bool is_free = false;
  bool channels_last = false;  // of a convolution: it finds its tensors in the order that it wants
  bool pads = false;           // of a product: compiled code pads operands that are not aligned, where that is faster
  bool is_known = true;        // false: its work is not known
  bool waits_for_device = false;  // the host needs its result
  bool in_chain = false;          // it is part of a fused kernel
  bool fused = false;             // part of the kernel of the op before it, so it is not launched itself

  bool operator==(const OpFeatures&) const = default;
};

enum class Fusion : std::uint8_t {
  none,    // eager mode: every op reads and writes
  chains,  // compiled: elementwise ops, norms and reductions that follow each other are one kernel
};

struct FeatureOptions {
  bool autocast = true;  // of what was counted in fp16 or bf16
  Fusion fusion = Fusion::none;
  bool channels_last = false;
  bool on_gpu = true;  // with its kernels of dropout
};

// Returns the features of each of `data.counts.ops`.
std::vector<OpFeatures> features_of(const Profile& data, const FeatureOptions& options);

// Returns the options of the features that the options of a prediction ask for, on a GPU or a CPU.
FeatureOptions feature_options(const Profile& data, const PredictionOptions& options, bool on_gpu);

// Returns whether the profile was counted while autocast was on, so that nothing is left to add.
bool counted_under_autocast(const Profile& data);

}  // namespace roofprof
