#pragma once
// Changes a count to what it would have been in another precision or with another batch.

#include <cstdint>
#include <optional>

#include "analysis/predict/op_class.h"
#include "core/profile.h"

namespace roofprof {

// Multiplies everything that work counts.
void scale_work(Work& work, double factor);

// Returns the bytes of an element; empty for integers.
std::optional<double> bytes_of(DType dtype);

// Moves floating-point work and bytes of fp64, fp32, tf32, fp16 and bf16 to that type; integers stay. Throws
// std::invalid_argument unless it is a floating-point type.
void set_precision(Profile& data, DType precision);

// Returns the leading dimension in which the model's inputs agree; 0: not known.
std::int64_t batch_of(const Profile& data);

// Scales everything but weights in proportion. Throws std::invalid_argument where the batch that was counted is not
// known, and for what holds more than a forward: gradients of weights have no batch.
void set_batch(Profile& data, std::int64_t batch);

}  // namespace roofprof
