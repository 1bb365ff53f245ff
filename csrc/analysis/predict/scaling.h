#pragma once
// What was counted, as it would have been counted in another precision or with another batch.

#include <cstdint>
#include <optional>

#include "core/profile_data.h"

namespace roofprof {

// Of an element; empty for integers.
std::optional<double> bytes_of(DType dtype);

// Floating-point work and bytes of fp64, fp32, tf32, fp16 and bf16 in that type; integers stay.
// Throws std::invalid_argument for a type that is no floating-point one.
void set_precision(ProfileData& data, DType precision);

// The leading dimension in which the model's inputs agree; 0: not known.
std::int64_t batch_of(const ProfileData& data);

// Everything but weights in proportion. Throws std::invalid_argument where the batch that was counted is not known, and
// for what holds more than a forward: gradients of weights have no batch.
void set_batch(ProfileData& data, std::int64_t batch);

}  // namespace roofprof
