#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

// A 3 x 3 matrix is 36 bytes. Counts are those of the textbook algorithm, step by step: LU of a 3 x 3 matrix takes 3
// reciprocals, 2 + 1 scalings, 4 + 1 products subtracted, that is 16; Cholesky 3 roots, 3 divisions, 4 products
// subtracted, that is 14.

Call square(std::string name) { return Call(std::move(name), "(A fp32 3x3)"); }
Call tall(std::string name) { return Call(std::move(name), "(A fp32 4x3)"); }

Call solved(std::string name, std::string matrix, std::string other) {
  return Call(std::move(name)).in(std::move(matrix), fp32, {3, 3}).in(std::move(other), fp32, {3, 2});
}

Call qr(std::string mode, Sizes q, Sizes r) {
  return tall("aten::linalg_qr").scalar("mode", std::move(mode)).out(fp32, std::move(q)).out(fp32, std::move(r));
}

Call reflected(bool left, Sizes other) {
  return Call("aten::ormqr(self fp32 4x3, input2 fp32 3)")
      .in("input3", fp32, other)
      .scalar("left", left)
      .out(fp32, other);
}

Call least_squares(std::string driver) {
  return Call("aten::linalg_lstsq(self fp32 4x3, b fp32 4x2)")
      .scalar("driver", std::move(driver))
      .with("-> fp32 3x2, fp32 2, int64, fp32 0");
}

Call svd(Sizes sizes, bool vectors, bool full) {
  const std::int64_t rank = 3;
  return Call("aten::_linalg_svd")
      .in("A", fp32, sizes)
      .scalar("full_matrices", full)
      .scalar("compute_uv", vectors)
      .out(fp32, {sizes[0], full ? sizes[0] : rank})
      .out(fp32, {rank})
      .out(fp32, {full ? sizes[1] : rank, sizes[1]});
}

const std::vector<CostCase> kCases = {
    {square("aten::cholesky").out(fp32, {3, 3}), {.flops = 14, .read = 36, .write = 36}},
    {Call("aten::linalg_cholesky_ex(self fp64 2x3x3) -> fp64 2x3x3, int32 2"),
     {.flops = 2 * 14, .read = 144, .write = 144 + 8}},
    // 10 multiplications of 6, 4 additions of 2.
    {Call("aten::linalg_cholesky_ex(self fp32 3x3 complex) -> fp32 3x3 complex, int32"),
     {.flops = 68, .read = 72, .write = 72 + 4}},
    // Two right-hand sides, each forwards and backwards: 3 divisions, 3 multiplications, 3 subtractions.
    {Call("aten::cholesky_solve(self fp32 3x2, input2 fp32 3x3) -> fp32 3x2"),
     {.flops = 2 * 18, .read = 24 + 36, .write = 24}},
    {Call("aten::_cholesky_solve_helper(self fp32 3x2, A fp32 3x3) -> fp32 3x2"),
     {.flops = 2 * 18, .read = 24 + 36, .write = 24}},
    {square("aten::cholesky_inverse").out(fp32, {3, 3}), {.flops = 25, .read = 36, .write = 36}},
    {square("aten::linalg_ldl_factor_ex").with("-> fp32 3x3, int32 3, int32"),
     {.flops = 23, .read = 36, .write = 36 + 12 + 4}},
    {Call("aten::linalg_ldl_solve(LD fp32 3x3, pivots int32 3, B fp32 3x2) -> fp32 3x2"),
     {.flops = 2 * 18, .read = 36 + 12 + 24, .write = 24}},

    {square("aten::linalg_lu_factor_ex").with("-> fp32 3x3, int32 3, int32"),
     {.flops = 16, .read = 36, .write = 36 + 12 + 4}},
    // Tall: 3 reciprocals, 3 + 2 + 1 scalings, 3 * 2 + 2 products subtracted; wide: 3, 2 + 1, and as many.
    {tall("aten::linalg_lu").with("-> fp32 4x4, fp32 4x3, fp32 3x3"), {.flops = 25, .read = 48, .write = 64 + 48 + 36}},
    {Call("aten::linalg_lu(A fp32 3x4) -> fp32 3x3, fp32 3x3, fp32 3x4"),
     {.flops = 22, .read = 48, .write = 36 + 36 + 48}},
    // Per right-hand side 3 products subtracted, then 3 products subtracted and 3 divisions.
    {Call("aten::linalg_lu_solve(LU fp32 3x3, pivots int32 3, B fp32 3x2) -> fp32 3x2"),
     {.flops = 2 * 15, .read = 36 + 12 + 24, .write = 24}},
    {solved("aten::_linalg_solve_ex", "A", "B").with("-> fp32 3x2, fp32 3x3, int32 3, int32"),
     {.flops = 16 + 2 * 15, .read = 60, .write = 24 + 36 + 12 + 4}},
    // A vector for each of two matrices.
    {Call("aten::_linalg_solve_ex(A fp32 2x3x3, B fp32 2x3) -> fp32 2x3, fp32 2x3x3, int32 2x3, int32 2"),
     {.flops = 2 * (16 + 15), .read = 72 + 24, .write = 24 + 72 + 24 + 8}},
    {square("aten::linalg_inv_ex").with("-> fp32 3x3, int32"), {.flops = 48, .read = 36, .write = 36 + 4}},
    {square("aten::_linalg_det").with("-> fp32, fp32 3x3, int32 3"),
     {.flops = 16 + 3, .read = 36, .write = 4 + 36 + 12}},
    {square("aten::_linalg_slogdet").with("-> fp32, fp32, fp32 3x3, int32 3"),
     {.flops = 16 + 15, .read = 36, .write = 8 + 36 + 12}},
    {solved("aten::linalg_solve_triangular", "self", "B").with("(unitriangular=false) -> fp32 3x2"),
     {.flops = 2 * 9, .read = 60, .write = 24}},
    {solved("aten::linalg_solve_triangular", "self", "B").with("(unitriangular=true) -> fp32 3x2"),
     {.flops = 2 * 6, .read = 60, .write = 24}},
    {Call("aten::triangular_solve(self fp32 3x2, A fp32 3x3, unitriangular=false) -> fp32 3x2, fp32 3x3"),
     {.flops = 2 * 9, .read = 60, .write = 60}},

    {tall("aten::geqrf").with("-> fp32 4x3, fp32 3"), {.flops = 55 + 34, .read = 48, .write = 48 + 12}},
    {square("aten::geqrf").with("-> fp32 3x3, fp32 3"), {.flops = 43 + 25, .read = 36, .write = 36 + 12}},
    {qr("reduced", {4, 3}, {3, 3}), {.flops = 89 + 56, .read = 48, .write = 48 + 36}},
    {qr("complete", {4, 4}, {4, 3}), {.flops = 89 + 95, .read = 48, .write = 64 + 48}},
    {qr("r", {0}, {3, 3}), {.flops = 89, .read = 48, .write = 36}},
    {Call("aten::linalg_householder_product(input fp32 4x3, tau fp32 3) -> fp32 4x3"),
     {.flops = 56, .read = 48 + 12, .write = 48}},
    {reflected(true, {4, 2}), {.flops = 42 + 36, .read = 48 + 12 + 32, .write = 32}},
    {reflected(false, {2, 4}), {.flops = 45 + 36, .read = 48 + 12 + 32, .write = 32}},
    {least_squares("gelsy"), {.flops = 89 + 78 + 2 * 9, .read = 80, .write = 24 + 8 + 8}},
    {least_squares("gelsd"), {.flops = 4 * 4 * 9 + 8 * 27, .read = 80, .write = 24 + 8 + 8}},

    {square("aten::linalg_eig").with("-> fp32 3 complex, fp32 3x3 complex"),
     {.flops = 25 * 27, .read = 36, .write = 24 + 72}},
    {square("aten::_linalg_eigvals").with("-> fp32 3 complex"), {.flops = 10 * 27, .read = 36, .write = 24}},
    {square("aten::_linalg_eigh").with("(compute_v=true) -> fp32 3, fp32 3x3"),
     {.flops = 9 * 27, .read = 36, .write = 12 + 36}},
    {square("aten::_linalg_eigh").with("(compute_v=false) -> fp32 3, fp32 0"), {.flops = 36, .read = 36, .write = 12}},
    {svd({4, 3}, true, false), {.flops = 14 * 36 + 8 * 27, .read = 48, .write = 48 + 12 + 36}},
    {svd({3, 4}, true, false), {.flops = 14 * 36 + 8 * 27, .read = 48, .write = 36 + 12 + 48}},
    {svd({4, 3}, true, true), {.flops = 4 * 48 + 8 * 36 + 9 * 27, .read = 48, .write = 64 + 12 + 36}},
    {Call("aten::_linalg_svd(A fp32 4x3, full_matrices=false, compute_uv=false) -> fp32 0, fp32 3, fp32 0"),
     {.flops = 4 * 36 - 36, .read = 48, .write = 12}},
};

TEST(Linalg, CostsAreAsWrittenOut) { check_family(linalg_costs(), kCases); }

TEST(Linalg, EmptyMatricesCostNothing) {
  expect_costs(std::vector<CostCase>{
      {Call("aten::linalg_cholesky_ex(self fp32 0x0) -> fp32 0x0"), {}},
      {Call("aten::linalg_lu_solve(LU fp32 0x0, pivots int32 0, B fp32 0x2) -> fp32 0x2"), {}},
      {Call("aten::linalg_qr(A fp32 5x0x3, mode=reduced) -> fp32 5x0x0, fp32 5x0x3"), {}},
  });
}

TEST(Linalg, CountsSaturate) {
  const std::int64_t huge = std::int64_t{1} << 40;
  const OpCall call =
      Call("aten::_linalg_eigh").in("A", fp32, {huge, huge}).scalar("compute_v", true).out(fp32, {huge});
  EXPECT_EQ(cost_of(call)->flops(), kSaturated);
}

}  // namespace
}  // namespace roofprof::ops::testing
