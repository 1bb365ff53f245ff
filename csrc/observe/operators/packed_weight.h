#pragma once
// Weights of quantized layers that are passed as an object, packed for the processor, and not as a tensor.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace roofprof::observe {

// Returns whether an argument of this type is a packed weight.
bool is_packed_weight(const c10::Type& type);

// Tells one packed weight from another as long as both live; 0 for None.
std::uint64_t identity_of_packed(const c10::IValue& value);

// Weight and, where there is one, bias. Unpacking copies: once per bucket or module.
std::vector<at::Tensor> unpacked(const c10::IValue& value);

}  // namespace roofprof::observe
