#include "join/tensor_float.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/note_codes.h"

namespace roofprof {
namespace {

// "cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4", "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc":
// of operands in fp32, instructions of 16 x 8 x 8 are those of TF32.
bool is_tensor_float(const std::string& kernel) {
  return kernel.find("tf32") != std::string::npos || kernel.find("tensorop_s1688") != std::string::npos;
}

}  // namespace

ProfileData with_tensor_float(ProfileData data) {
  std::set<std::int64_t> products;
  for (const auto& kernel : data.kernels) {
    if (kernel.bucket < 0 || !is_tensor_float(kernel.name)) continue;
    const auto& op = data.ops[static_cast<std::size_t>(kernel.bucket)];
    if (op.dtype == DType::fp32 && op.work.macs > 0) products.insert(kernel.bucket);
  }
  std::vector<std::string> named;
  for (const auto index : products) {
    auto& op = data.ops[static_cast<std::size_t>(index)];
    const auto operations = std::min(saturating_multiply(2, op.work.macs), op.work.operations_in(DType::fp32));
    op.work.operations_in(DType::fp32) -= operations;
    op.work.operations_in(DType::tf32) += operations;
    op.dtype = DType::tf32;
    if (std::ranges::find(named, op.op) == named.end()) named.push_back(op.op);
  }
  if (!products.empty()) {
    add_note(data.notes, "tensor-float",
             "products of fp32 ran in TF32 on tensor cores, as the names of their kernels say: they are held against "
             "that roof",
             std::move(named));
  }
  return data;
}

}  // namespace roofprof
