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

const std::vector<CostCase> kLinalgCases = {
    {Call("aten::linalg_cholesky_ex(self fp64 2x3x3) -> fp64 2x3x3, int32 2"), {.flops = 2 * 14}},
    // 10 multiplications of 6, 4 additions of 2.
    {Call("aten::linalg_cholesky_ex(self fp32 3x3 complex) -> fp32 3x3 complex, int32"), {.flops = 68}},
    // Two right-hand sides, each forwards and backwards: 3 divisions, 3 multiplications, 3 subtractions.
    {Call("aten::cholesky_solve(self fp32 3x2, input2 fp32 3x3) -> fp32 3x2"), {.flops = 2 * 18}},
    {square("aten::cholesky_inverse").out(fp32, {3, 3}), {.flops = 25}},
    {square("aten::linalg_ldl_factor_ex").with("-> fp32 3x3, int32 3, int32"), {.flops = 23}},
    {Call("aten::linalg_ldl_solve(LD fp32 3x3, pivots int32 3, B fp32 3x2) -> fp32 3x2"), {.flops = 2 * 18}},

    // Tall: 3 reciprocals, 3 + 2 + 1 scalings, 3 * 2 + 2 products subtracted; wide: 3, 2 + 1, and as many.
    {tall("aten::linalg_lu").with("-> fp32 4x4, fp32 4x3, fp32 3x3"), {.flops = 25}},
    {Call("aten::linalg_lu(A fp32 3x4) -> fp32 3x3, fp32 3x3, fp32 3x4"), {.flops = 22}},
    // Per right-hand side 3 products subtracted, then 3 products subtracted and 3 divisions.
    {Call("aten::linalg_lu_solve(LU fp32 3x3, pivots int32 3, B fp32 3x2) -> fp32 3x2"), {.flops = 2 * 15}},
    {solved("aten::_linalg_solve_ex", "A", "B").with("-> fp32 3x2, fp32 3x3, int32 3, int32"), {.flops = 16 + 2 * 15}},
    // A vector for each of two matrices.
    {Call("aten::_linalg_solve_ex(A fp32 2x3x3, B fp32 2x3) -> fp32 2x3, fp32 2x3x3, int32 2x3, int32 2"),
     {.flops = 2 * (16 + 15)}},
    {square("aten::linalg_inv_ex").with("-> fp32 3x3, int32"), {.flops = 48}},
    {square("aten::_linalg_det").with("-> fp32, fp32 3x3, int32 3"), {.flops = 16 + 3}},
    {square("aten::_linalg_slogdet").with("-> fp32, fp32, fp32 3x3, int32 3"), {.flops = 16 + 15}},
    {solved("aten::linalg_solve_triangular", "self", "B").with("(unitriangular=false) -> fp32 3x2"), {.flops = 2 * 9}},
    {solved("aten::linalg_solve_triangular", "self", "B").with("(unitriangular=true) -> fp32 3x2"), {.flops = 2 * 6}},
    {Call("aten::triangular_solve(self fp32 3x2, A fp32 3x3, unitriangular=false) -> fp32 3x2, fp32 3x3"),
     {.flops = 2 * 9}},

    {tall("aten::geqrf").with("-> fp32 4x3, fp32 3"), {.flops = 55 + 34}},
    {square("aten::geqrf").with("-> fp32 3x3, fp32 3"), {.flops = 43 + 25}},
    {qr("reduced", {4, 3}, {3, 3}), {.flops = 89 + 56}},
    {qr("complete", {4, 4}, {4, 3}), {.flops = 89 + 95}},
    {qr("r", {0}, {3, 3}), {.flops = 89}},
    {Call("aten::linalg_householder_product(input fp32 4x3, tau fp32 3) -> fp32 4x3"), {.flops = 56}},
    {reflected(true, {4, 2}), {.flops = 42 + 36}},
    {reflected(false, {2, 4}), {.flops = 45 + 36}},
    {least_squares("gelsy"), {.flops = 89 + 78 + 2 * 9}},
    {least_squares("gelsd"), {.flops = 4 * 4 * 9 + 8 * 27}},

    {square("aten::linalg_eig").with("-> fp32 3 complex, fp32 3x3 complex"), {.flops = 25 * 27}},
    {square("aten::_linalg_eigvals").with("-> fp32 3 complex"), {.flops = 10 * 27}},
    {square("aten::_linalg_eigh").with("(compute_v=true) -> fp32 3, fp32 3x3"), {.flops = 9 * 27}},
    {square("aten::_linalg_eigh").with("(compute_v=false) -> fp32 3, fp32 0"), {.flops = 36}},
    {svd({4, 3}, true, false), {.flops = 14 * 36 + 8 * 27}},
    {svd({3, 4}, true, false), {.flops = 14 * 36 + 8 * 27}},
    {svd({4, 3}, true, true), {.flops = 4 * 48 + 8 * 36 + 9 * 27}},
    {Call("aten::_linalg_svd(A fp32 4x3, full_matrices=false, compute_uv=false) -> fp32 0, fp32 3, fp32 0"),
     {.flops = 4 * 36 - 36}},
};

TEST(Linalg, CostsAreAsWrittenOut) { check_family(linalg_costs(), kLinalgCases); }

TEST(Linalg, EmptyMatricesCostNothing) {
  expect_costs(std::vector<CostCase>{
      {Call("aten::linalg_cholesky_ex(self fp32 0x0) -> fp32 0x0"), {}},
      {Call("aten::linalg_lu_solve(LU fp32 0x0, pivots int32 0, B fp32 0x2) -> fp32 0x2"), {}},
      {Call("aten::linalg_qr(A fp32 5x0x3, mode=reduced) -> fp32 5x0x0, fp32 5x0x3"), {}},
  });
}

}  // namespace
}  // namespace roofprof::ops::testing
