#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

// 6 x 8 with 11 values, fp32. COO: two int64 indices a value, 44 + 176 bytes.
constexpr std::int64_t kCoo = 44 + 11 * 2 * 8;
// CSR: 7 row offsets and 11 columns, int64.
constexpr std::int64_t kCsr = 44 + (7 + 11) * 8;

Call coo(std::string op, std::string name = "self") {
  return Call(std::move(op)).in(std::move(name), fp32, {6, 8}).sparse(11, 176);
}

Call csr(std::string op, std::string name = "self") {
  return Call(std::move(op)).in(std::move(name), fp32, {6, 8}).sparse(11, 144);
}

// Nothing is moved or computed.
CostCase free_of_cost(const char* op) { return {coo(op), {}}; }

// x != 0 for 48 elements.
CostCase to_sparse(const char* op) {
  return {Call(op).in("self", fp32, {6, 8}).out(fp32, {6, 8}).sparse(11, 144),
          {.flops = 48, .read_bytes = 192, .write_bytes = kCsr}};
}

CostCase per_value(const char* op, std::int64_t flops) {
  return {coo(op).out(fp32, {6, 8}).sparse(11, 176), {.flops = flops, .read_bytes = kCoo, .write_bytes = kCoo}};
}

CostCase softmax_backward(const char* op) {
  return {Call(op)
              .in("grad_output", fp32, {6, 8})
              .sparse(11, 176)
              .in("output", fp32, {6, 8})
              .sparse(11, 176)
              .in("self", fp32, {6, 8})
              .sparse(11, 176)
              .out(fp32, {6, 8})
              .sparse(11, 176),
          {.flops = 44, .read_bytes = 2 * kCoo, .write_bytes = kCoo}};
}

CostCase copied(const char* op) {
  return {coo(op).out(fp32, {6, 8}).sparse(11, 176), {.read_bytes = kCoo, .write_bytes = kCoo}};
}

Call sampled(double beta, double alpha) {
  return csr("aten::sparse_sampled_addmm")
      .in("mat1", fp32, {6, 3})
      .in("mat2", fp32, {3, 8})
      .scalar("beta", beta)
      .scalar("alpha", alpha)
      .out(fp32, {6, 8})
      .sparse(11, 144);
}

// The rows of an 8 x 5 matrix put together by each of 6 rows of values.
Call reduced(const char* how) {
  return csr("aten::_sparse_mm_reduce_impl").in("other", fp32, {8, 5}).scalar("reduce", how).out(fp32, {6, 5});
}

Call reduced_backward(bool self, bool other) {
  return csr("aten::_sparse_mm_reduce_impl_backward")
      .in("grad_out", fp32, {6, 5})
      .in("weight", fp32, {8, 5})
      .scalar("output_mask", {self, other})
      .out(fp32, {6, 8})
      .sparse(11, 144)
      .out(fp32, {8, 5});
}

// A weight of 8 x 32 fp16 of which 2:4 keeps 8 x 16, with 2 bits of place for each value kept.
Call structured(const char* op, const char* weight, const char* places) {
  return Call(op).in(weight, fp16, {8, 16}).in(places, int16, {8, 2});
}

const std::vector<CostCase> kCases = {
    {sampled(1, 1), {.macs = 33, .flops = 66 + 11, .read_bytes = kCsr + 72 + 96, .write_bytes = kCsr}},
    {sampled(0.5, 2), {.macs = 33, .flops = 66 + 33, .read_bytes = kCsr + 72 + 96, .write_bytes = kCsr}},
    {coo("aten::hspmm", "mat1").in("mat2", fp32, {8, 5}).out(fp32, {6, 5}).sparse(20, 32),
     {.macs = 55, .flops = 110, .read_bytes = kCoo + 160, .write_bytes = 80 + 32}},
    {Call("aten::sspaddmm")
         .in("self", fp32, {6, 5})
         .sparse(4, 64)
         .in("mat1", fp32, {6, 8})
         .sparse(11, 176)
         .in("mat2", fp32, {8, 5})
         .scalar("beta", 1)
         .scalar("alpha", 1)
         .out(fp32, {6, 5})
         .sparse(24, 384),
     {.macs = 55, .flops = 110 + 4, .read_bytes = 16 + 64 + kCoo + 160, .write_bytes = 96 + 384}},
    {reduced("sum"), {.macs = 55, .flops = 110, .read_bytes = kCsr + 160, .write_bytes = 120}},
    {reduced("mean"), {.macs = 55, .flops = 110 + 30, .read_bytes = kCsr + 160, .write_bytes = 120}},
    {reduced("amax"), {.flops = 110, .read_bytes = kCsr + 160, .write_bytes = 120}},
    {reduced_backward(true, true),
     {.macs = 110, .flops = 220, .read_bytes = kCsr + 120 + 160, .write_bytes = kCsr + 160}},
    {reduced_backward(false, true),
     {.macs = 55, .flops = 110, .read_bytes = kCsr + 120 + 160, .write_bytes = kCsr + 160}},

    // 4 rows of 32 features: half of 4 x 8 x 32 MACs.
    {structured("aten::_sparse_semi_structured_linear", "weight", "meta")
         .in("input", fp16, {4, 32})
         .in("bias", fp16, {8})
         .scalar("activation", "silu")
         .out(fp16, {4, 8}),
     {.macs = 512, .flops = 1024 + 6 * 32, .read_bytes = 256 + 32 + 256 + 16, .write_bytes = 64}},
    {structured("aten::_sparse_semi_structured_linear", "weight", "meta")
         .in("input", int8, {4, 32})
         .none("bias")
         .scalar("activation", "relu")
         .out(int32, {4, 8}),
     {.macs = 512, .int_ops = 1024 + 32, .read_bytes = 256 + 32 + 128, .write_bytes = 128}},
    {structured("aten::_sparse_semi_structured_mm", "mat1", "mat1_meta").in("mat2", fp16, {32, 4}).out(fp16, {8, 4}),
     {.macs = 512, .flops = 1024, .read_bytes = 256 + 32 + 256, .write_bytes = 64}},
    {structured("aten::_sparse_semi_structured_addmm", "mat1", "mat1_meta")
         .in("input", fp16, {8})
         .in("mat2", fp16, {32, 4})
         .scalar("alpha", 2)
         .scalar("beta", 1)
         .out(fp16, {8, 4}),
     {.macs = 512, .flops = 1024 + 64, .read_bytes = 256 + 32 + 16 + 256, .write_bytes = 64}},
    {Call("aten::_cslt_sparse_mm")
         .in("compressed_A", fp16, {8, 18})
         .in("dense_B", fp16, {32, 4})
         .in("bias", fp16, {8})
         .none("alpha")
         .out(fp16, {8, 4}),
     {.macs = 512, .flops = 1024 + 32, .read_bytes = 288 + 256 + 16, .write_bytes = 64}},
    {Call("aten::_cslt_compress").in("input", fp16, {8, 32}).out(fp16, {144}), {.read_bytes = 512, .write_bytes = 288}},
    {Call("aten::_to_sparse_semi_structured").in("dense", fp16, {8, 32}).out(fp16, {8, 16}).out(int16, {8, 2}),
     {.read_bytes = 512, .write_bytes = 256 + 32}},
    {Call("aten::_sparse_semi_structured_apply")
         .in("input", fp16, {8, 32})
         .in("thread_masks", uint8, {8, 4})
         .out(fp16, {8, 16})
         .out(fp16, {32, 4}),
     {.read_bytes = 512 + 32, .write_bytes = 256 + 256}},
    {Call("aten::_sparse_semi_structured_apply_dense")
         .in("input", fp16, {8, 32})
         .in("thread_masks", uint8, {8, 4})
         .out(fp16, {8, 32}),
     {.read_bytes = 512 + 32, .write_bytes = 512}},

    per_value("aten::_sparse_softmax", 55),
    per_value("aten::_sparse_log_softmax", 55),
    softmax_backward("aten::_sparse_softmax_backward_data"),
    softmax_backward("aten::_sparse_log_softmax_backward_data"),
    {coo("aten::_sparse_sum").out(fp32, {8}).sparse(7, 56), {.flops = 11, .read_bytes = kCoo, .write_bytes = 28 + 56}},
    {Call("aten::_sparse_sum_backward")
         .in("grad", fp32, {8})
         .sparse(7, 56)
         .in("self", fp32, {6, 8})
         .sparse(11, 176)
         .out(fp32, {6, 8})
         .sparse(11, 176),
     {.read_bytes = 28 + 56 + kCoo, .write_bytes = kCoo}},
    {csr("aten::_sparse_csr_sum").out(fp32, {6, 1}).sparse(6, 104),
     {.flops = 11, .read_bytes = kCsr, .write_bytes = 24 + 104}},
    {csr("aten::_sparse_csr_prod").out(fp32, {6, 1}).sparse(6, 104),
     {.flops = 11, .read_bytes = kCsr, .write_bytes = 24 + 104}},

    to_sparse("aten::_to_sparse"),
    to_sparse("aten::_to_sparse_csr"),
    to_sparse("aten::_to_sparse_csc"),
    to_sparse("aten::_to_sparse_bsr"),
    to_sparse("aten::_to_sparse_bsc"),
    // From another sparse format: rearranged.
    {coo("aten::_to_sparse_csr").out(fp32, {6, 8}).sparse(11, 144), {.read_bytes = kCoo, .write_bytes = kCsr}},
    {csr("aten::_to_dense").out(fp32, {6, 8}), {.read_bytes = kCsr, .write_bytes = 192}},
    // 11 values sorted: 4 comparisons each. Two of them stood at one place.
    {coo("aten::_coalesce").out(fp32, {6, 8}).sparse(10, 160),
     {.flops = 11, .int_ops = 44, .read_bytes = kCoo, .write_bytes = 40 + 160}},
    {Call("aten::sparse_mask")
         .in("self", fp32, {6, 8})
         .in("mask", fp32, {6, 8})
         .sparse(11, 176)
         .out(fp32, {6, 8})
         .sparse(11, 176),
     {.read_bytes = 176 + 44, .write_bytes = kCoo}},
    {Call("aten::_sparse_mask_projection")
         .in("self", fp32, {6, 8})
         .sparse(20, 320)
         .in("mask", fp32, {6, 8})
         .sparse(11, 176)
         .out(fp32, {6, 8})
         .sparse(11, 176),
     {.read_bytes = 80 + 320 + 176, .write_bytes = kCoo}},
    {coo("aten::copy_sparse_to_sparse_")
         .written()
         .in("src", fp32, {6, 8})
         .sparse(11, 176)
         .out(fp32, {6, 8})
         .sparse(11, 176)
         .written(),
     {.read_bytes = kCoo, .write_bytes = kCoo}},
    copied("aten::_sparse_broadcast_to_copy"),
    {Call("aten::_spdiags").in("diagonals", fp32, {2, 4}).in("offsets", int64, {2}).out(fp32, {4, 4}).sparse(7, 112),
     {.read_bytes = 32 + 16, .write_bytes = 28 + 112}},
    {Call("aten::_convert_indices_from_coo_to_csr").in("self", int64, {11}).out(int64, {7}),
     {.read_bytes = 88, .write_bytes = 56}},
    {Call("aten::_convert_indices_from_csr_to_coo")
         .in("crow_indices", int64, {7})
         .in("col_indices", int64, {11})
         .out(int64, {2, 11}),
     {.read_bytes = 144, .write_bytes = 176}},
    {Call("aten::_validate_compressed_sparse_indices").in("compressed_idx", int64, {7}).in("plain_idx", int64, {11}),
     {.int_ops = 18, .read_bytes = 144}},

    free_of_cost("aten::_nnz"),
    free_of_cost("aten::sparse_dim"),
    free_of_cost("aten::dense_dim"),
    free_of_cost("aten::is_coalesced"),
    free_of_cost("aten::_coalesced_"),
    free_of_cost("aten::_sparse_coo_tensor_with_dims"),
    free_of_cost("aten::_sparse_coo_tensor_with_dims_and_tensors"),
    free_of_cost("aten::_sparse_compressed_tensor_with_dims"),
    free_of_cost("aten::sparse_compressed_tensor"),
    free_of_cost("aten::sparse_resize_"),
    free_of_cost("aten::sparse_resize_and_clear_"),
    free_of_cost("aten::resize_as_sparse_"),
};

TEST(Sparse, Costs) { check_family(sparse_costs(), kCases); }

// Lines of other families on sparse operands.
const std::vector<CostCase> kElsewhere = {
    {coo("aten::mm").in("mat2", fp32, {8, 5}).out(fp32, {6, 5}),
     {.macs = 55, .flops = 110, .read_bytes = kCoo + 160, .write_bytes = 120}},
    {csr("aten::mv").in("vec", fp32, {8}).out(fp32, {6}),
     {.macs = 11, .flops = 22, .read_bytes = kCsr + 32, .write_bytes = 24}},
    // Each value meets one row of a batch of 3 x 2.
    {Call("aten::matmul").in("self", fp32, {3, 2, 6}).in("other", fp32, {6, 8}).sparse(11, 144).out(fp32, {3, 2, 8}),
     {.macs = 66, .flops = 132, .read_bytes = kCsr + 144, .write_bytes = 192}},
    {Call("aten::linear").in("input", fp32, {3, 8}).in("weight", fp32, {6, 8}).sparse(11, 144).out(fp32, {3, 6}),
     {.macs = 33, .flops = 66, .read_bytes = kCsr + 96, .write_bytes = 72}},
    {Call("aten::addmm")
         .in("self", fp32, {6, 5})
         .in("mat1", fp32, {6, 8})
         .sparse(11, 176)
         .in("mat2", fp32, {8, 5})
         .out(fp32, {6, 5}),
     {.macs = 55, .flops = 110 + 30, .read_bytes = kCoo + 120 + 160, .write_bytes = 120}},
    {Call("aten::mm").in("self", fp32, {0, 8}).sparse(0, 0).in("mat2", fp32, {8, 5}).out(fp32, {0, 5}),
     {.read_bytes = 160}},
    {coo("aten::mm").in("mat2", fp32, {8, 6}).sparse(11, 176).out(fp32, {6, 6}).sparse(9, 144), {.not_known = true}},
    per_value("aten::relu", 11),
    {coo("aten::sum").out(fp32, {}), {.flops = 11, .read_bytes = kCoo, .write_bytes = 4}},
    // A dense tensor plus a sparse one; in place only what the sparse one names is touched.
    {Call("aten::add").in("self", fp32, {6, 8}).in("other", fp32, {6, 8}).sparse(11, 176).out(fp32, {6, 8}),
     {.flops = 11, .read_bytes = 192 + kCoo, .write_bytes = 192}},
    {Call("aten::add_")
         .in("self", fp32, {6, 8})
         .written()
         .in("other", fp32, {6, 8})
         .sparse(11, 176)
         .out(fp32, {6, 8})
         .written(),
     {.flops = 11, .read_bytes = 44 + kCoo, .write_bytes = 44}},
    {coo("aten::clone").out(fp32, {6, 8}).sparse(11, 176), {.read_bytes = kCoo, .write_bytes = kCoo}},
};

TEST(Sparse, CountedByStoredValues) { expect_costs(kElsewhere); }

}  // namespace
}  // namespace roofprof::ops::testing
