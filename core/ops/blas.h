#pragma once

#include <cstdint>
#include <string>

namespace olrank::blas {

// Dense linear algebra in row-major order on the BLAS and LAPACK that libtorch_cpu exports (MKL), or in a
// build without LibTorch on the system's OpenBLAS or MKL. It stays on the calling thread: parallelism is
// the caller's, over blocks that do not depend on the number of threads, so that results keep their bits on
// any number of them. OLRANK_BLAS=plain in the environment takes olrank's own loops in place of the
// library: slower, with the same bits on every CPU.
//
// A matrix is a pointer to its first element and the distance between its rows (`stride`, at least the
// number of columns). Sizes may be zero.

enum class Transpose { kNo, kYes };

/// C ← alpha · op(A) op(B) + beta · C, with op(A) [rows × inner], op(B) [inner × columns].
/// Number is float or double.
template <class Number>
void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t rows, std::int64_t columns,
          std::int64_t inner, Number alpha, const Number* a, std::int64_t stride_a, const Number* b,
          std::int64_t stride_b, Number beta, Number* c, std::int64_t stride_c);

/// Products and triangular solves with few columns are fastest where these are a multiple of 12: MKL's
/// kernels for AMD take 12 columns in 0.6 times the time of 10, and 60 in 0.7 times that of 64. Callers
/// that may fill up with columns of zeros pass this many.
constexpr std::int64_t kFastColumns = 12;
constexpr std::int64_t fast_columns(std::int64_t columns) {
  return (columns + kFastColumns - 1) / kFastColumns * kFastColumns;
}

/// C ← alpha · AᵀB + C in rows `begin` to `end` of C, up to column `end`: one panel of the lower triangle
/// of a symmetric C, with A and B of as many `rows` and one stride.
void add_gram(std::int64_t begin, std::int64_t end, std::int64_t rows, double alpha, const double* a,
              const double* b, std::int64_t stride, double* c, std::int64_t stride_c);

/// y ← alpha · op(A) x + beta · y, with A [rows × columns].
void gemv(Transpose transpose_a, std::int64_t rows, std::int64_t columns, double alpha, const double* a,
          std::int64_t stride_a, const double* x, double beta, double* y);

/// B ← L⁻¹ B (kNo) or L⁻ᵀ B (kYes) with L [n × n] lower triangular, B [n × columns].
void solve_lower(Transpose transpose, std::int64_t n, std::int64_t columns, const double* l,
                 std::int64_t stride_l, double* b, std::int64_t stride_b);

/// A ← L with A = L Lᵀ: the lower triangle is read and replaced, the upper one left alone. Throws
/// NumericError, naming the row, when A is not positive definite.
void cholesky(std::int64_t n, double* a, std::int64_t stride_a);

/// A⁻¹ from cholesky()'s factor, in the lower triangle.
void inverse_from_cholesky(std::int64_t n, double* l, std::int64_t stride_l);

/// √(x² + y²).
double length(double x, double y);

/// Makes results have the same bits on every CPU. It restricts MKL to instructions that every x86-64 CPU
/// has, in one order, if it is called before anything else here; in place of OpenBLAS it takes the plain
/// loops, for the rest of the process.
void compute_as_on_any_cpu();
/// "MKL_CBWR = COMPATIBLE": the variable of the environment by which the function above or the user
/// restricts the library; empty if neither does.
std::string restriction();

/// "MKL 2024.2", followed by what restricts it, "OpenBLAS 0.3.21 for Zen", or "olrank's plain loops".
std::string library_name();

}  // namespace olrank::blas
