// Factorisations, solvers, eigenvalues and singular values of the matrices in a tensor's last two dimensions.
// They count operations and no MACs: they are not contractions, although their inner loops multiply and add.

#include <algorithm>
#include <cmath>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- counts for one matrix, or one right-hand side

// Counts in the matrix's own type: a complex multiplication is 6 real operations, a complex addition 2. Divisions and
// roots are multiplications. Formulas hold for sizes from 1 on.
struct Count {
  double multiplications = 0;
  double additions = 0;

  Count operator+(const Count& other) const {
    return {multiplications + other.multiplications, additions + other.additions};
  }
  Count operator*(double times) const { return {multiplications * times, additions * times}; }
};

// Splits a source's count in half, where the source gives only the sum of multiplications and additions.
Count half_of_each(double operations) { return {operations / 2, operations / 2}; }

// LAPACK Working Note 41, named as the routines there. m x n matrices, k reflectors.

// Counts for each of k = min(m, n) columns: a reciprocal, the column scaled, a product of vectors subtracted from the
// rest.
Count getrf(double m, double n) {
  const double k = std::min(m, n);
  const double updates = k * m * n - (m + n) * k * (k + 1) / 2 + k * (k + 1) * (2 * k + 1) / 6;
  return {k + k * m - k * (k + 1) / 2 + updates, updates};
}

Count getri(double n) { return {n * (n * (2 * n / 3 + 0.5) + 5.0 / 6), n * (n * (2 * n / 3 - 1.5) + 5.0 / 6)}; }

Count getrs(double n) { return {n * n, n * (n - 1)}; }
Count potrf(double n) { return {n * (n * (n / 6 + 0.5) + 1.0 / 3), n * (n * n - 1) / 6}; }
Count potri(double n) { return {n * (n * (n / 3 + 1) + 2.0 / 3), n * (n * (n / 3 - 0.5) + 1.0 / 6)}; }
Count potrs(double n) { return {n * (n + 1), n * (n - 1)}; }
Count sytrf(double n) { return {n * (n * (n / 6 + 0.5) + 10.0 / 3), n * (n * n - 1) / 6}; }
Count trtrs(double n, bool unit_diagonal) { return {n * (unit_diagonal ? n - 1 : n + 1) / 2, n * (n - 1) / 2}; }

Count geqrf(double m, double n) {
  if (m > n) return {n * (n * (0.5 - n / 3 + m) + m + 23.0 / 6), n * (n * (0.5 - n / 3 + m) + 5.0 / 6)};
  return {m * (m * (-0.5 - m / 3 + n) + 2 * n + 23.0 / 6), m * (m * (-0.5 - m / 3 + n) + n + 5.0 / 6)};
}

Count orgqr(double m, double n, double k) {
  const double common = 2 * m * n + k * (2 * k / 3 - (m + n));
  return {k * (common + 2 * n - k - 5.0 / 3), k * (common + n - m + 1.0 / 3)};
}

Count ormqr(double m, double n, double k, bool left) {
  if (left) return {n * k * (2 * m - k + 2), n * k * (2 * m - k + 1)};
  return {k * (m * (2 * n - k + 1) + n - k / 2 + 0.5), m * k * (2 * n - k + 1)};
}

// Golub and Van Loan, Matrix Computations, 4th edition: estimates, since these algorithms iterate until they converge.

Count general_eigen(double n, bool vectors) { return half_of_each((vectors ? 25 : 10) * n * n * n); }
Count symmetric_eigen(double n, bool vectors) { return half_of_each((vectors ? 9 : 4.0 / 3) * n * n * n); }

// The Golub-Reinsch algorithm: singular values alone, with U and V, or with U of n columns only.
Count singular_values(double m, double n, bool vectors, bool full) {
  if (m < n) std::swap(m, n);
  if (!vectors) return half_of_each(4 * m * n * n - 4 * n * n * n / 3);
  if (!full) return half_of_each(14 * m * n * n + 8 * n * n * n);
  return half_of_each(4 * m * m * n + 8 * m * n * n + 9 * n * n * n);
}

// ---- CountOperations

void add(Work& work, const Count& each, std::int64_t times, const TensorDesc& matrix) {
  const double sum =
      matrix.is_complex ? 6 * each.multiplications + 2 * each.additions : each.multiplications + each.additions;
  const auto most = static_cast<double>(kSaturated);
  const std::int64_t rounded = sum >= most ? kSaturated : static_cast<std::int64_t>(std::llround(std::max(sum, 0.0)));
  add_operations(work, saturating_multiply(rounded, times), matrix.dtype);
}

double rows(const TensorDesc& matrix) { return static_cast<double>(matrix.size(-2)); }
double columns(const TensorDesc& matrix) { return static_cast<double>(matrix.size(-1)); }

std::int64_t matrices(const TensorDesc& tensor) {
  return tensor.numel() == 0 ? 0 : tensor.numel() / product({tensor.size(-1), tensor.size(-2)});
}

// Vectors of that length in the solution, along any dimension.
std::int64_t right_hand_sides(const OpCall& call, const TensorDesc& matrix) {
  return matrix.size(-1) == 0 ? 0 : call.result().numel() / matrix.size(-1);
}

void cholesky(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  add(work, potrf(columns(matrix)), matrices(matrix), matrix);
}

void cholesky_inverse(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& factor = call.tensor(0);
  add(work, potri(columns(factor)), matrices(factor), factor);
}

// Serves solvers after an LDL factorisation, too: they take as many operations.
void solve_by_cholesky(const OpCall& call, std::int64_t factor_position, Work& work) {
  const TensorDesc& factor = call.tensor(static_cast<std::size_t>(factor_position));
  add(work, potrs(columns(factor)), right_hand_sides(call, factor), factor);
}

void ldl(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  add(work, sytrf(columns(matrix)), matrices(matrix), matrix);
}

void lu(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  add(work, getrf(rows(matrix), columns(matrix)), matrices(matrix), matrix);
}

void solve_by_lu(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& factors = call.tensor(0);
  add(work, getrs(columns(factors)), right_hand_sides(call, factors), factors);
}

void solve(const OpCall& call, std::int64_t weight, Work& work) {
  lu(call, weight, work);
  solve_by_lu(call, weight, work);
}

void inverse(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  lu(call, weight, work);
  add(work, getri(columns(matrix)), matrices(matrix), matrix);
}

// The weight is what is done with each element of U's diagonal.
void determinant(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  lu(call, weight, work);
  add(work, Count{columns(matrix), 0} * static_cast<double>(weight), matrices(matrix), matrix);
}

// The weight is the position of the triangular matrix.
void solve_triangular(const OpCall& call, std::int64_t matrix_position, Work& work) {
  const TensorDesc& matrix = call.tensor(static_cast<std::size_t>(matrix_position));
  const bool unit_diagonal = call.boolean("unitriangular", false);
  add(work, trtrs(columns(matrix), unit_diagonal), right_hand_sides(call, matrix), matrix);
}

void householder_qr(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  add(work, geqrf(rows(matrix), columns(matrix)), matrices(matrix), matrix);
}

void qr(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  const double m = rows(matrix);
  const double k = std::min(m, columns(matrix));
  const std::string mode = call.text("mode");
  householder_qr(call, weight, work);
  if (mode != "r") add(work, orgqr(m, mode == "complete" ? m : k, k), matrices(matrix), matrix);
}

void product_of_reflectors(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& reflectors = call.tensor(0);
  add(work, orgqr(rows(reflectors), columns(reflectors), columns(call.tensor(1))), matrices(reflectors), reflectors);
}

void apply_reflectors(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& other = call.tensor("input3");
  const double reflectors = columns(call.tensor("input2"));
  add(work, ormqr(rows(other), columns(other), reflectors, call.boolean("left", true)), matrices(other), other);
}

// Full rank is assumed. By singular values (gelsd, gelss) the estimate has the right-hand sides in it.
void least_squares(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  const double m = std::max(rows(matrix), columns(matrix));
  const double n = std::min(rows(matrix), columns(matrix));
  const std::string driver = call.text("driver");
  if (driver == "gelsd" || driver == "gelss") {
    return add(work, half_of_each(4 * m * n * n + 8 * n * n * n), matrices(matrix), matrix);
  }
  add(work, geqrf(m, n), matrices(matrix), matrix);
  add(work, ormqr(m, 1, n, true) + trtrs(n, false), right_hand_sides(call, matrix), matrix);
}

// The weight is 1 where vectors are computed.
void eigen(const OpCall& call, std::int64_t vectors, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  add(work, general_eigen(columns(matrix), vectors != 0), matrices(matrix), matrix);
}

void eigen_symmetric(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  add(work, symmetric_eigen(columns(matrix), call.boolean("compute_v", true)), matrices(matrix), matrix);
}

void svd(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  const bool vectors = call.boolean("compute_uv", true);
  const bool full = call.boolean("full_matrices", false);
  add(work, singular_values(rows(matrix), columns(matrix), vectors, full), matrices(matrix), matrix);
}

constexpr const char* kLapack = "LAPACK Working Note 41, operation counts of the routine named in the formula";
constexpr const char* kGolub =
    "Golub and Van Loan, Matrix Computations, 4th edition: an estimate, the algorithm iterates";

constexpr const char* kPotrf = "potrf: n^3 / 3 + n^2 / 2 + n / 6; no MACs";
constexpr const char* kPotrs = "potrs: 2 n^2 per right-hand side; no MACs";
constexpr const char* kGetrf = "getrf: m n^2 - n^3 / 3 - n^2 / 2 + 5 n / 6 for m >= n; no MACs";
constexpr const char* kGetrs = "getrs: 2 n^2 - n per right-hand side; no MACs";
constexpr const char* kGetri = "getrf + getri: 2 n^3 - 3 n^2 / 2 + 5 n / 2; no MACs";
constexpr const char* kTrtrs = "trtrs: n^2 per right-hand side, n less with a diagonal of ones; no MACs";
constexpr const char* kGeqrf = "geqrf: 2 m n^2 - 2 n^3 / 3 + m n + n^2 + 14 n / 3 for m > n; no MACs";
constexpr const char* kOrgqr = "orgqr, k reflectors: 4 m n k - 2 (m + n) k^2 + 4 k^3 / 3 + 3 n k - m k - k^2 - 4 k / 3";
constexpr const char* kEig = "25 n^3 with vectors, 10 n^3 without; no MACs";
constexpr const char* kEigh = "9 n^3 with vectors, 4 n^3 / 3 without; no MACs";
constexpr const char* kSvd =
    "m >= n: 14 m n^2 + 8 n^3; full 4 m^2 n + 8 m n^2 + 9 n^3; values alone 4 m n^2 - 4 n^3 / 3; no MACs";
constexpr const char* kLstsq =
    "geqrf + ormqr + trtrs; by singular values (gelsd, gelss) about 4 m n^2 + 8 n^3; no MACs";

constexpr OpCost kLinalgCosts[] = {
    {"aten::cholesky aten::linalg_cholesky_ex", cholesky, 0, nullptr, "", kPotrf, kLapack},
    {"aten::cholesky_solve aten::_cholesky_solve_helper", solve_by_cholesky, 1, nullptr, "", kPotrs, kLapack},
    {"aten::cholesky_inverse", cholesky_inverse, 0, nullptr, "", "potri: 2 n^3 / 3 + n^2 / 2 + 5 n / 6; no MACs",
     kLapack},
    {"aten::linalg_ldl_factor_ex", ldl, 0, nullptr, "", "sytrf: n^3 / 3 + n^2 / 2 + 19 n / 6; no MACs", kLapack},
    {"aten::linalg_ldl_solve", solve_by_cholesky, 0, nullptr, "", "sytrs: 2 n^2 per right-hand side; no MACs", kLapack},

    {"aten::linalg_lu_factor_ex aten::linalg_lu", lu, 0, nullptr, "", kGetrf, kLapack},
    {"aten::linalg_lu_solve", solve_by_lu, 0, nullptr, "", kGetrs, kLapack},
    {"aten::_linalg_solve_ex", solve, 0, nullptr, "", "getrf, then getrs per right-hand side; no MACs", kLapack},
    {"aten::linalg_inv_ex", inverse, 0, nullptr, "", kGetri, kLapack},
    {"aten::_linalg_det", determinant, 1, nullptr, "", "getrf + the product of n diagonal elements; no MACs", kLapack},
    {"aten::_linalg_slogdet", determinant, 5, nullptr, "",
     "getrf; per diagonal element sign, product, abs, log, sum; no MACs", kLapack},
    {"aten::linalg_solve_triangular", solve_triangular, 0, nullptr, "unitriangular", kTrtrs, kLapack},
    {"aten::triangular_solve", solve_triangular, 1, nullptr, "unitriangular", kTrtrs, kLapack},

    {"aten::geqrf", householder_qr, 0, nullptr, "", kGeqrf, kLapack},
    {"aten::linalg_qr", qr, 0, nullptr, "mode", "geqrf + orgqr, mode r without orgqr; no MACs", kLapack},
    {"aten::linalg_householder_product", product_of_reflectors, 0, nullptr, "", kOrgqr, kLapack},
    {"aten::ormqr", apply_reflectors, 0, nullptr, "left",
     "ormqr, k reflectors from the left: 4 m n k - 2 n k^2 + 3 n k; no MACs", kLapack},
    {"aten::linalg_lstsq", least_squares, 0, nullptr, "driver", kLstsq, kLapack},

    {"aten::linalg_eig", eigen, 1, nullptr, "", kEig, kGolub},
    {"aten::_linalg_eigvals", eigen, 0, nullptr, "", kEig, kGolub},
    {"aten::_linalg_eigh", eigen_symmetric, 0, nullptr, "compute_v", kEigh, kGolub},
    {"aten::_linalg_svd", svd, 0, nullptr, "compute_uv,full_matrices", kSvd, kGolub},
};

}  // namespace

std::span<const OpCost> linalg_costs() { return kLinalgCosts; }

}  // namespace roofprof::ops
