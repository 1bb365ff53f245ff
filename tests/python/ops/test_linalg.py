"""Factorisations, solvers and Fourier transforms: counted against the textbook algorithms, on numbers that count."""

import math

import pytest
import torch
from torch import linalg

import roofprof


class Number:
    """A number that counts what is done with it. Divisions and roots are multiplications, as in LAPACK's counts."""

    multiplications = additions = 0

    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        Number.multiplications += 1
        return Number(self.value * other.value)

    def __sub__(self, other):
        Number.additions += 1
        return Number(self.value - other.value)

    def __truediv__(self, other):
        Number.multiplications += 1
        return Number(self.value / other.value)

    def reciprocal(self):
        Number.multiplications += 1
        return Number(1 / self.value)

    def sqrt(self):
        Number.multiplications += 1
        return Number(math.sqrt(self.value))


def numbers(matrix):
    return [[Number(value) for value in row] for row in matrix.tolist()]


def operations(algorithm, *matrices):
    """Multiplications and additions of one run, and its result as a tensor."""
    Number.multiplications = Number.additions = 0
    result = algorithm(*(numbers(matrix) for matrix in matrices))
    return (
        Number.multiplications,
        Number.additions,
        torch.tensor([[item.value for item in row] for row in result], dtype=torch.float64),
    )


def factor_lu(a):
    """In place, without exchanging rows."""
    for j in range(min(len(a), len(a[0]))):
        inverse = a[j][j].reciprocal()
        for i in range(j + 1, len(a)):
            a[i][j] *= inverse
            for k in range(j + 1, len(a[0])):
                a[i][k] -= a[i][j] * a[j][k]
    return a


def factor_cholesky(a):
    for j in range(len(a)):
        for i in range(j, len(a)):
            for k in range(j):
                a[i][j] -= a[i][k] * a[j][k]
            a[i][j] = a[i][j].sqrt() if i == j else a[i][j] / a[j][j]
    return a


def substitute_down(a, b, *, unit_diagonal=False):
    for column in range(len(b[0])):
        for i in range(len(a)):
            for k in range(i):
                b[i][column] -= a[i][k] * b[k][column]
            if not unit_diagonal:
                b[i][column] /= a[i][i]
    return b


def substitute_up(a, b):
    """With the upper triangle."""
    for column in range(len(b[0])):
        for i in reversed(range(len(a))):
            for k in range(i + 1, len(a)):
                b[i][column] -= a[i][k] * b[k][column]
            b[i][column] /= a[i][i]
    return b


def solve_by_lu(a, b):
    return substitute_up(a, substitute_down(a, b, unit_diagonal=True))


def solve_by_cholesky(a, b):
    return substitute_up([list(column) for column in zip(*a, strict=True)], substitute_down(a, b))


def solve(a, b):
    return solve_by_lu(factor_lu(a), b)


def dominant(rows, columns):
    """Needs no exchange of rows, and is positive definite where it is square."""
    matrix = torch.rand(rows, columns, dtype=torch.float64)
    return matrix @ matrix.T + rows * torch.eye(rows) if rows == columns else matrix + rows * torch.eye(rows, columns)


@torch.no_grad()
def flops(function, *args):
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    assert report.total.macs == 0
    return report.total.flops


A, L, B = dominant(7, 7), linalg.cholesky(dominant(7, 7)), torch.rand(7, 3, dtype=torch.float64)
LU, PIVOTS = linalg.lu_factor(A)
EXACT = {
    "lu": (factor_lu, (A,), lambda a: linalg.lu_factor_ex(a).LU),
    "lu tall": (factor_lu, (dominant(7, 4),), lambda a: linalg.lu_factor_ex(a).LU),
    "lu wide": (factor_lu, (dominant(4, 7),), lambda a: linalg.lu_factor_ex(a).LU),
    "lu solve": (solve_by_lu, (LU, B), lambda lu, b: linalg.lu_solve(lu, PIVOTS, b)),
    "solve": (solve, (A, B), lambda a, b: linalg.solve_ex(a, b).result),
    "cholesky": (factor_cholesky, (A,), lambda a: linalg.cholesky_ex(a).L),
    "cholesky solve": (solve_by_cholesky, (L, B), lambda factor, b: torch.cholesky_solve(b, factor)),
    "triangular": (substitute_down, (L, B), lambda a, b: linalg.solve_triangular(a, b, upper=False)),
    "unit diagonal": (
        lambda a, b: substitute_down(a, b, unit_diagonal=True),
        (L, B),
        lambda a, b: linalg.solve_triangular(a, b, upper=False, unitriangular=True),
    ),
}


@pytest.mark.parametrize(("algorithm", "matrices", "function"), EXACT.values(), ids=EXACT)
def test_operations_are_those_of_the_textbook_algorithm(algorithm, matrices, function):
    multiplications, additions, result = operations(algorithm, *matrices)
    expected = function(*matrices)
    lower = torch.tril(result) if algorithm is factor_cholesky else result
    torch.testing.assert_close(lower, expected)  # the algorithm is that of the operator
    assert flops(function, *matrices) == multiplications + additions
    # Complex: 6 real operations for each multiplication, 2 for each addition.
    twice = [matrix.expand(2, *matrix.shape).to(torch.complex128) for matrix in matrices]
    if function is not EXACT["lu solve"][2]:  # its pivots would need a batch as well
        assert flops(function, *twice) == 2 * (6 * multiplications + 2 * additions)


# Leading terms as books give them (Golub and Van Loan; Trefethen and Bau), for m x n matrices with m >= n.
M, N = 300, 200
LEADING = {
    "lu": (lambda a, _: linalg.lu_factor(a), M * N**2 - N**3 / 3),
    "qr, r": (lambda a, _: linalg.qr(a, mode="r"), 2 * M * N**2 - 2 * N**3 / 3),
    "qr": (lambda a, _: linalg.qr(a), 2 * (2 * M * N**2 - 2 * N**3 / 3)),
    "svdvals": (lambda a, _: linalg.svdvals(a), 4 * M * N**2 - 4 * N**3 / 3),
    "svd": (lambda a, _: linalg.svd(a, full_matrices=False), 14 * M * N**2 + 8 * N**3),
    "inv": (lambda _, a: linalg.inv(a), 2 * N**3),
    "det": (lambda _, a: linalg.det(a), 2 * N**3 / 3),
    "slogdet": (lambda _, a: linalg.slogdet(a), 2 * N**3 / 3),
    "cholesky": (lambda _, a: linalg.cholesky(a), N**3 / 3),
    "cholesky_inverse": (lambda _, a: torch.cholesky_inverse(a), 2 * N**3 / 3),
    "ldl_factor": (lambda _, a: linalg.ldl_factor(a), N**3 / 3),
    "eigvals": (lambda _, a: linalg.eigvals(a), 10 * N**3),
    "eig": (lambda _, a: linalg.eig(a), 25 * N**3),
    "eigvalsh": (lambda _, a: linalg.eigvalsh(a), 4 * N**3 / 3),
    "eigh": (lambda _, a: linalg.eigh(a), 9 * N**3),
}


@pytest.mark.parametrize(("function", "expected"), LEADING.values(), ids=LEADING)
def test_leading_terms_of_large_matrices(function, expected):
    assert flops(function, torch.rand(M, N), dominant(N, N).float()) == pytest.approx(expected, rel=0.02)


REAL, COMPLEX = torch.rand(3, 16, 8), torch.rand(3, 16, 8, dtype=torch.complex64)
