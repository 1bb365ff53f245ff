#pragma once
// What torch.autocast in fp16 or bf16 adds to a model that was counted in that type: its parameters stay in fp32, and
// so does what is computed with them elementwise; matrix products cast it back. The types are followed through the ops
// in the order in which they first ran, by the sizes of tensors, since a profile does not say which tensor goes where.
// Norms are taken to run in the narrow type: measurements of RTX 4090 agree with that, though torch's own list has them
// in fp32 (docs/prediction.md).

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/predict/op_class.h"

namespace roofprof {

// Of one call. The bytes of the op itself take the place of those that were counted.
struct AutocastBytes {
  double read = 0;
  double write = 0;
  double casts = 0;  // read and written by casts before it; those of parameters are left out: they are made once
};

class AutocastFlow {
 public:
  // Of the next op, which was counted with these bytes for one call; to be asked for every op that is not free.
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

}  // namespace roofprof
