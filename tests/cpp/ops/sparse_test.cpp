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

CostCase per_value(const char* op, std::int64_t flops) {
  return {coo(op).with("-> fp32 6x8 sparse 11/176"), {.flops = flops, .read = kCoo, .write = kCoo}};
}

Call sampled(double beta, double alpha) {
  return csr("aten::sparse_sampled_addmm")
      .with("(mat1 fp32 6x3, mat2 fp32 3x8)")
      .scalar("beta", beta)
      .scalar("alpha", alpha)
      .with("-> fp32 6x8 sparse 11/144");
}

// The rows of an 8 x 5 matrix put together by each of 6 rows of values.
Call reduced(const char* how) {
  return csr("aten::_sparse_mm_reduce_impl").in("other", fp32, {8, 5}).scalar("reduce", how).out(fp32, {6, 5});
}

Call reduced_backward(bool self, bool other) {
  return csr("aten::_sparse_mm_reduce_impl_backward")
      .with("(grad_out fp32 6x5, weight fp32 8x5)")
      .scalar("output_mask", Sizes{self, other})
      .with("-> fp32 6x8 sparse 11/144, fp32 8x5");
}

// A weight of 8 x 32 fp16 of which 2:4 keeps 8 x 16, with 2 bits of place for each value kept.
Call structured(const char* op, const char* weight, const char* places) {
  return Call(op).in(weight, fp16, {8, 16}).in(places, int16, {8, 2});
}

const std::vector<CostCase> kSparseCases = {
    {sampled(1, 1), {.macs = 33, .flops = 66 + 11, .read = kCsr + 72 + 96, .write = kCsr}},
    {sampled(0.5, 2), {.macs = 33, .flops = 66 + 33, .read = kCsr + 72 + 96, .write = kCsr}},
    {coo("aten::hspmm", "mat1").with("(mat2 fp32 8x5) -> fp32 6x5 sparse 20/32"),
     {.macs = 55, .flops = 110, .read = kCoo + 160, .write = 80 + 32}},
    {Call("aten::sspaddmm(self fp32 6x5 sparse 4/64, mat1 fp32 6x8 sparse 11/176, mat2 fp32 8x5, beta=1, alpha=1) -> "
          "fp32 6x5 sparse 24/384"),
     {.macs = 55, .flops = 110 + 4, .read = 16 + 64 + kCoo + 160, .write = 96 + 384}},
    {reduced("sum"), {.macs = 55, .flops = 110, .read = kCsr + 160, .write = 120}},
    {reduced("mean"), {.macs = 55, .flops = 110 + 30, .read = kCsr + 160, .write = 120}},
    {reduced("amax"), {.flops = 110, .read = kCsr + 160, .write = 120}},
    {reduced_backward(true, true), {.macs = 110, .flops = 220, .read = kCsr + 120 + 160, .write = kCsr + 160}},
    {reduced_backward(false, true), {.macs = 55, .flops = 110, .read = kCsr + 120 + 160, .write = kCsr + 160}},

    // 4 rows of 32 features: half of 4 x 8 x 32 MACs.
    {structured("aten::_sparse_semi_structured_linear", "weight", "meta")
         .with("(input fp16 4x32, bias fp16 8, activation=silu) -> fp16 4x8"),
     {.macs = 512, .flops = 1024 + 6 * 32, .read = 256 + 32 + 256 + 16, .write = 64}},
    {structured("aten::_sparse_semi_structured_linear", "weight", "meta")
         .with("(input int8 4x32, bias none, activation=relu) -> int32 4x8"),
     {.macs = 512, .int_ops = 1024 + 32, .read = 256 + 32 + 128, .write = 128}},
    {structured("aten::_sparse_semi_structured_mm", "mat1", "mat1_meta").with("(mat2 fp16 32x4) -> fp16 8x4"),
     {.macs = 512, .flops = 1024, .read = 256 + 32 + 256, .write = 64}},
    {structured("aten::_sparse_semi_structured_addmm", "mat1", "mat1_meta")
         .with("(input fp16 8, mat2 fp16 32x4, alpha=2, beta=1) -> fp16 8x4"),
     {.macs = 512, .flops = 1024 + 64, .read = 256 + 32 + 16 + 256, .write = 64}},
    {Call("aten::_cslt_sparse_mm(compressed_A fp16 8x18, dense_B fp16 32x4, bias fp16 8, alpha none) -> fp16 8x4"),
     {.macs = 512, .flops = 1024 + 32, .read = 288 + 256 + 16, .write = 64}},
    {Call("aten::_cslt_compress(input fp16 8x32) -> fp16 144"), {.read = 512, .write = 288}},

    per_value("aten::_sparse_softmax", 55),
    per_value("aten::_sparse_log_softmax", 55),
    {Call("aten::_sparse_softmax_backward_data(grad_output fp32 6x8 sparse 11/176, output fp32 6x8 sparse 11/176, self "
          "fp32 6x8 sparse 11/176) -> fp32 6x8 sparse 11/176"),
     {.flops = 44, .read = 2 * kCoo, .write = kCoo}},
    {coo("aten::_sparse_sum").with("-> fp32 8 sparse 7/56"), {.flops = 11, .read = kCoo, .write = 28 + 56}},
    {csr("aten::_sparse_csr_prod").with("-> fp32 6x1 sparse 6/104"), {.flops = 11, .read = kCsr, .write = 24 + 104}},

    // x != 0 for 48 elements.
    {Call("aten::_to_sparse_csr(self fp32 6x8) -> fp32 6x8 sparse 11/144"), {.flops = 48, .read = 192, .write = kCsr}},
    // From another sparse format: rearranged.
    {coo("aten::_to_sparse_csr").with("-> fp32 6x8 sparse 11/144"), {.read = kCoo, .write = kCsr}},
    // 11 values sorted: 4 comparisons each. Two of them stood at one place.
    {coo("aten::_coalesce").with("-> fp32 6x8 sparse 10/160"),
     {.flops = 11, .int_ops = 44, .read = kCoo, .write = 40 + 160}},
    {Call("aten::sparse_mask(self fp32 6x8, mask fp32 6x8 sparse 11/176) -> fp32 6x8 sparse 11/176"),
     {.read = 176 + 44, .write = kCoo}},
    {coo("aten::copy_sparse_to_sparse_")
         .written()
         .with("(src fp32 6x8 sparse 11/176) -> fp32 6x8 sparse 11/176 written"),
     {.read = kCoo, .write = kCoo}},
    {Call("aten::_validate_compressed_sparse_indices(compressed_idx int64 7, plain_idx int64 11)"),
     {.int_ops = 18, .read = 144}},
};

TEST(Sparse, Costs) { check_family(sparse_costs(), kSparseCases); }

// Lines of other families on sparse operands.
const std::vector<CostCase> kSparseElsewhere = {
    {coo("aten::mm").with("(mat2 fp32 8x5) -> fp32 6x5"), {.macs = 55, .flops = 110, .read = kCoo + 160, .write = 120}},
    {csr("aten::mv").with("(vec fp32 8) -> fp32 6"), {.macs = 11, .flops = 22, .read = kCsr + 32, .write = 24}},
    // Each value meets one row of a batch of 3 x 2.
    {Call("aten::matmul(self fp32 3x2x6, other fp32 6x8 sparse 11/144) -> fp32 3x2x8"),
     {.macs = 66, .flops = 132, .read = kCsr + 144, .write = 192}},
    {Call("aten::linear(input fp32 3x8, weight fp32 6x8 sparse 11/144) -> fp32 3x6"),
     {.macs = 33, .flops = 66, .read = kCsr + 96, .write = 72}},
    {Call("aten::addmm(self fp32 6x5, mat1 fp32 6x8 sparse 11/176, mat2 fp32 8x5) -> fp32 6x5"),
     {.macs = 55, .flops = 110 + 30, .read = kCoo + 120 + 160, .write = 120}},
    {Call("aten::mm(self fp32 0x8 sparse 0/0, mat2 fp32 8x5) -> fp32 0x5"), {.read = 160}},
    {coo("aten::mm").with("(mat2 fp32 8x6 sparse 11/176) -> fp32 6x6 sparse 9/144"), {.not_known = true}},
    per_value("aten::relu", 11),
    {coo("aten::sum").out(fp32, {}), {.flops = 11, .read = kCoo, .write = 4}},
    // A dense tensor plus a sparse one; in place only what the sparse one names is touched.
    {Call("aten::add(self fp32 6x8, other fp32 6x8 sparse 11/176) -> fp32 6x8"),
     {.flops = 11, .read = 192 + kCoo, .write = 192}},
    {Call("aten::add_(self fp32 6x8 written, other fp32 6x8 sparse 11/176) -> fp32 6x8 written"),
     {.flops = 11, .read = 44 + kCoo, .write = 44}},
    {coo("aten::clone").with("-> fp32 6x8 sparse 11/176"), {.read = kCoo, .write = kCoo}},
};

TEST(Sparse, CountedByStoredValues) { expect_costs(kSparseElsewhere); }

}  // namespace
}  // namespace roofprof::ops::testing
