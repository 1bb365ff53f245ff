#pragma once
// Finds the GPU architecture that a kernel was built for, as far as its name tells.

#include <optional>
#include <string_view>

namespace roofprof {

// Returns 80 for "sm80_xmma_gemm_...", "ampere_sgemm_...", "cutlass_80_tensorop_..." and "cutlass::arch::Sm80"; empty
// where the name tells none, as those of PyTorch's own and of Triton's kernels, and of device code that only looks like
// it ("sm20_rcp").
std::optional<int> architecture_in_name(std::string_view kernel);

// Returns 89 for "8.9"; empty for anything else.
std::optional<int> architecture_of_device(std::string_view compute_capability);

}  // namespace roofprof
