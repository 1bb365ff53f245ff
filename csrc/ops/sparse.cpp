// Sparse formats. COO, CSR, CSC, BSR and BSC count by the values they store (whole blocks where there are blocks);
// 2:4 structured ones by the half that is kept, which is what is executed. Products of a sparse and a dense tensor
// stand in matmul.cpp, elementwise operations and sums in their own families: all of them count stored values.

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- products

// beta * self + alpha * (mat1 @ mat2) at the indices of self: one dot product for each stored value.
void sampled_addmm(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& left = call.tensor("mat1");
  const std::int64_t values = call.result().stored_numel();
  add_macs(work, saturating_multiply(values, left.size(-1)), left);
  add_operations(work, product({values, blend_operations(call), left.is_complex ? 2 : 1}), left.dtype);
}

// A sparse result: each stored value of mat1 meets a row of mat2.
void sparse_by_dense(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& sparse = call.tensor("mat1");
  add_macs(work, saturating_multiply(sparse.stored_numel(), call.tensor("mat2").size(-1)), sparse);
}

void sparse_plus_product(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  sparse_by_dense(call, 0, work);
  add_operations(work, saturating_multiply(blend_operations(call), call.tensor("self").stored_numel()),
                 call.compute_dtype());
}

// Rows of `other`, weighted by the values in each row of self, then summed, averaged or searched for an extreme.
void reduce_products(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& other = call.tensor("other");
  const std::int64_t products = saturating_multiply(call.tensor("self").stored_numel(), other.size(-1));
  const std::string reduce = call.text("reduce");
  if (reduce == "sum" || reduce == "mean") {
    add_macs(work, products, other);
    if (reduce == "mean") add_operations(work, call.result().numel(), other.dtype);
  } else {
    add_operations(work, saturating_multiply(2, products), other.dtype);
  }
}

// The gradients of the stored values and of `other`, each with the forward's products.
void reduce_products_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& grad = call.tensor("grad_out");
  const std::int64_t products = saturating_multiply(call.tensor("self").stored_numel(), grad.size(-1));
  for (const std::size_t operand : {0, 1}) {
    if (wants_gradient(call, operand)) add_macs(work, products, grad);
  }
}

// ---- 2:4 structured: half of the contracted length is kept

constexpr std::int64_t kSilu = 5;  // as aten::silu

void structured_linear(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& input = call.tensor("input");
  const std::int64_t outputs = call.result().numel();
  const std::string activation = call.text("activation");
  const std::int64_t others = (call.find_tensor("bias") != nullptr ? 1 : 0) + (activation == "relu"   ? 1
                                                                               : activation == "silu" ? kSilu
                                                                                                      : 0);
  add_macs(work, saturating_multiply(outputs, input.size(-1) / 2), input);
  add_operations(work, saturating_multiply(others, outputs), input.dtype);
}

void structured_mm(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& dense = call.tensor("mat2");
  add_macs(work, saturating_multiply(call.result().numel(), dense.size(0) / 2), dense);
}

void structured_addmm(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  structured_mm(call, 0, work);
  add_operations(work, saturating_multiply(blend_operations(call), call.result().numel()), call.tensor("mat2").dtype);
}

void structured_cusparselt(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& dense = call.tensor("dense_B");
  const std::int64_t others =
      (call.find_tensor("bias") != nullptr ? 1 : 0) + (call.find_tensor("alpha") != nullptr ? 1 : 0);
  add_macs(work, saturating_multiply(call.result().numel(), dense.size(0) / 2), dense);
  add_operations(work, saturating_multiply(others, call.result().numel()), dense.dtype);
}

// ---- conversions

// x != 0 for each element of a dense tensor; from one sparse format to another nothing is computed.
void find_values(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc& self = call.tensor("self");
  if (!self.is_sparse()) add_operations(work, saturating_multiply(weight, self.numel()), self.dtype);
}

// Indices sorted, values of equal indices added up.
void coalesce(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const std::int64_t values = call.tensor("self").stored_numel();
  add_operations(work, saturating_multiply(values, ceil_log2(values)), DType::int64);
  add_operations(work, values, call.compute_dtype());
}

// The indices of the mask, and what self has there.
void mask_bytes(const OpCall& call, Work& work) {
  const TensorDesc& self = call.tensor("self");
  const TensorDesc& mask = call.tensor("mask");
  const std::int64_t taken = self.is_sparse() ? self.held_bytes() : product({mask.stored_numel(), self.item_bytes});
  work.read_bytes = saturating_add(mask.index_bytes, taken);
  write_results(call, work);
}

// self gives only the format.
void softmax_backward_bytes(const OpCall& call, Work& work) {
  read(work, call.find_tensor("grad_output"));
  read(work, call.find_tensor("output"));
  write_results(call, work);
}

void per_index(const OpCall& call, std::int64_t weight, Work& work) {
  for (const char* indices : {"compressed_idx", "plain_idx"}) {
    add_operations(work, saturating_multiply(weight, call.tensor(indices).numel()), call.tensor(indices).dtype);
  }
}

constexpr const char* kToSparse = "x != 0 for each dense element; values and indices written";

constexpr OpCost kSparseCosts[] = {
    {"aten::sparse_sampled_addmm", sampled_addmm, 0, nullptr, "beta,alpha",
     "MACs = stored values x contracted length; + self 1, factors beta and alpha if not 1"},
    {"aten::hspmm", sparse_by_dense, 0, nullptr, "", "MACs = stored values x columns"},
    {"aten::sspaddmm", sparse_plus_product, 0, nullptr, "beta,alpha", "MACs = stored values x columns; + self 1"},
    {"aten::_sparse_mm_reduce_impl", reduce_products, 0, nullptr, "reduce",
     "sum, mean: MACs = stored values x columns, mean divides; amax, amin: multiply and compare"},
    {"aten::_sparse_mm_reduce_impl_backward", reduce_products_backward, 0, nullptr, "output_mask",
     "stored values x columns for each wanted gradient"},

    {"aten::_sparse_semi_structured_linear", structured_linear, 0, nullptr, "activation",
     "MACs = outputs x half the input features: what 2:4 keeps; bias 1, relu 1, silu 5"},
    {"aten::_sparse_semi_structured_mm", structured_mm, 0, nullptr, "", "MACs = outputs x half the contracted length"},
    {"aten::_sparse_semi_structured_addmm", structured_addmm, 0, nullptr, "beta,alpha",
     "MACs = outputs x half the contracted length; + input 1, factors beta and alpha if not 1"},
    {"aten::_cslt_sparse_mm", structured_cusparselt, 0, nullptr, "",
     "MACs = outputs x half the contracted length; bias 1, alpha 1"},
    {"aten::_cslt_compress aten::_to_sparse_semi_structured", no_operations, 0, nullptr, "",
     "half of the values copied, indices written"},
    {"aten::_sparse_semi_structured_apply aten::_sparse_semi_structured_apply_dense", no_operations, 0, nullptr, "",
     "masked values copied"},

    {"aten::_sparse_softmax", per_input, 5, nullptr, "", "as softmax, per stored value"},
    {"aten::_sparse_log_softmax", per_input, 5, nullptr, "", "as log_softmax, per stored value"},
    {"aten::_sparse_softmax_backward_data aten::_sparse_log_softmax_backward_data", per_input, 4,
     softmax_backward_bytes, "", "4 per stored value"},
    {"aten::_sparse_sum aten::_sparse_csr_sum", per_input, 1, nullptr, "", "one addition per stored value"},
    {"aten::_sparse_sum_backward", no_operations, 0, nullptr, "", "gradient put at the stored indices"},
    {"aten::_sparse_csr_prod", per_input, 1, nullptr, "", "one multiplication per stored value"},

    {"aten::_to_sparse aten::_to_sparse_csr aten::_to_sparse_csc aten::_to_sparse_bsr aten::_to_sparse_bsc",
     find_values, 1, nullptr, "", kToSparse},
    {"aten::_to_dense", no_operations, 0, nullptr, "", "values and indices read, all elements written"},
    {"aten::_coalesce", coalesce, 0, nullptr, "", "n log2 n comparisons, one addition per stored value"},
    {"aten::sparse_mask aten::_sparse_mask_projection", no_operations, 0, mask_bytes, "",
     "one element per stored value of the mask"},
    {"aten::copy_sparse_to_sparse", no_operations, 0, overwriting_bytes, "", "copied"},
    {"aten::_spdiags", no_operations, 0, nullptr, "", "diagonals copied, indices written"},
    {"aten::_sparse_broadcast_to_copy", no_operations, 0, nullptr, "", "copied"},
    {"aten::_convert_indices_from_coo_to_csr aten::_convert_indices_from_csr_to_coo", no_operations, 0, nullptr, "",
     "indices read and written"},
    {"aten::_validate_compressed_sparse_indices", per_index, 1, nullptr, "", "one comparison per index"},

    {"aten::_nnz aten::sparse_dim aten::dense_dim aten::is_coalesced", no_operations, 0, no_bytes, "", "a question"},
    {"aten::_coalesced", no_operations, 0, no_bytes, "", "a flag"},
    {"aten::_sparse_coo_tensor_with_dims", no_operations, 0, no_bytes, "", "an empty tensor"},
    {"aten::_sparse_coo_tensor_with_dims_and_tensors aten::sparse_compressed_tensor", no_operations, 0, no_bytes, "",
     "around its parts, no copy"},
    {"aten::_sparse_compressed_tensor_with_dims aten::sparse_resize aten::sparse_resize_and_clear "
     "aten::resize_as_sparse",
     no_operations, 0, no_bytes, "", "memory allocated"},
};

}  // namespace

std::span<const OpCost> sparse_costs() { return kSparseCosts; }

}  // namespace roofprof::ops
