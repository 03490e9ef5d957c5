#include "core/ops/blas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "core/math/any_cpu.h"
#include "core/math/host_device.h"
#include "core/throw_error.h"

// The Fortran interface, column-major with 32-bit integers, as libtorch_cpu and OpenBLAS export it. A
// row-major matrix is the column-major form of its transpose; each wrapper below says how it uses that.
extern "C" {
void dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
            const double* beta, double* c, const int* ldc);
void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
            const float* beta, float* c, const int* ldc);
void dgemv_(const char* transpose, const int* m, const int* n, const double* alpha, const double* a,
            const int* lda, const double* x, const int* incx, const double* beta, double* y,
            const int* incy);
void dtrsm_(const char* side, const char* uplo, const char* transpose, const char* diagonal, const int* m,
            const int* n, const double* alpha, const double* a, const int* lda, double* b, const int* ldb);
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info);
void dpotri_(const char* uplo, const int* n, double* a, const int* lda, int* info);
#if OLRANK_OPENBLAS
void openblas_set_num_threads(int threads);
const char* openblas_get_config();
const char* openblas_get_corename();
int openblas_get_parallel();
#else
int MKL_Set_Num_Threads_Local(int threads);
void MKL_Get_Version_String(char* buffer, int size);
#endif
}

namespace olrank::blas {
namespace {

#if OLRANK_OPENBLAS
constexpr const char* kRestrictedBy = "OPENBLAS_CORETYPE";

bool prepare() {
  // Calls of several threads share one buffer in a build for one thread (0), and products are wrong.
  constexpr int kWithThreads = 1;
  if (openblas_get_parallel() != kWithThreads) {
    throw_error<Error>(
        "The OpenBLAS of this system was not built for POSIX threads, so that several of them would spoil "
        "each other's numbers: install libopenblas0-pthread, and choose it by update-alternatives.");
  }
  openblas_set_num_threads(1);
  return true;
}

void stay_on_this_thread() {
  static const bool once = prepare();
  static_cast<void>(once);
}
#else
constexpr const char* kRestrictedBy = "MKL_CBWR";

// MKL's thread count is a property of the thread that calls it.
void stay_on_this_thread() {
  thread_local const int before = MKL_Set_Num_Threads_Local(1);
  static_cast<void>(before);
}
#endif

std::string_view restricting_value() {
  const char* value = std::getenv(kRestrictedBy);
  return value == nullptr ? "" : value;
}

int narrowed(std::int64_t size) {
  if (size > std::numeric_limits<int>::max()) {
    throw_error<InvalidArgument>("A matrix side or stride of {} exceeds this BLAS's 32-bit sizes.", size);
  }
  return static_cast<int>(size);
}

constexpr const char* kLibrary = "OLRANK_BLAS";
constexpr std::string_view kPlain = "plain";

bool asks_for_plain_loops() {
  const char* value = std::getenv(kLibrary);
  if (value == nullptr || *value == '\0') return false;
  if (value != kPlain)
    throw_error<InvalidArgument>("{} is '{}': set it to {}, or leave it out.", kLibrary, value, kPlain);
  return true;
}

std::atomic<bool>& plain_loops() {
  static std::atomic<bool> asked = asks_for_plain_loops();
  return asked;
}

bool is_plain() {
  return plain_loops().load(std::memory_order_relaxed);
}

// The plain loops take the place of the library's routines. Each element is a sum in the order of its
// terms, without fused multiplications, so that it has the same bits on every CPU, also on ARM. Blocks
// change no order.
constexpr std::int64_t kPlainTerms = 32;
constexpr std::int64_t kPlainColumns = 256;

/// c += Σ weight · a[k · step] · row k of b, term by term.
template <class Number>
OLRANK_ALWAYS_INLINE void add_terms(std::int64_t columns, std::int64_t terms, Number weight,
                                    const Number* a, std::int64_t step, const Number* b,
                                    std::int64_t stride, Number* __restrict c) {
  std::int64_t k = 0;
  for (; k + 4 <= terms; k += 4) {
    const Number w0 = weight * a[k * step], w1 = weight * a[(k + 1) * step];
    const Number w2 = weight * a[(k + 2) * step], w3 = weight * a[(k + 3) * step];
    const Number* const b0 = b + k * stride;
    const Number* const b1 = b0 + stride;
    const Number* const b2 = b1 + stride;
    const Number* const b3 = b2 + stride;
    for (std::int64_t j = 0; j < columns; ++j)
      c[j] = (((c[j] + w0 * b0[j]) + w1 * b1[j]) + w2 * b2[j]) + w3 * b3[j];
  }
  for (; k < terms; ++k) {
    const Number w = weight * a[k * step];
    for (std::int64_t j = 0; j < columns; ++j) c[j] += w * b[k * stride + j];
  }
}

OLRANK_VECTOR_CLONES
void add_row(std::int64_t columns, std::int64_t terms, double weight, const double* a, std::int64_t step,
             const double* b, std::int64_t stride, double* c) {
  add_terms(columns, terms, weight, a, step, b, stride, c);
}

OLRANK_VECTOR_CLONES
void add_row(std::int64_t columns, std::int64_t terms, float weight, const float* a, std::int64_t step,
             const float* b, std::int64_t stride, float* c) {
  add_terms(columns, terms, weight, a, step, b, stride, c);
}

template <class Number>
void plain_gemm(bool transpose_a, bool transpose_b, std::int64_t rows, std::int64_t columns,
                std::int64_t inner, Number alpha, const Number* a, std::int64_t stride_a, const Number* b,
                std::int64_t stride_b, Number beta, Number* c, std::int64_t stride_c) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      Number& element = c[i * stride_c + j];
      element = beta == Number{0} ? Number{0} : beta * element;
    }
  }
  std::array<Number, kPlainTerms * kPlainColumns> turned;
  for (std::int64_t left = 0; left < columns; left += kPlainColumns) {
    const std::int64_t width = std::min(kPlainColumns, columns - left);
    for (std::int64_t first = 0; first < inner; first += kPlainTerms) {
      const std::int64_t terms = std::min(kPlainTerms, inner - first);
      if (transpose_b) {
        for (std::int64_t j = 0; j < width; ++j) {
          for (std::int64_t k = 0; k < terms; ++k)
            turned[k * width + j] = b[(left + j) * stride_b + first + k];
        }
      }
      const Number* const block = transpose_b ? turned.data() : b + first * stride_b + left;
      for (std::int64_t i = 0; i < rows; ++i) {
        const Number* const row = transpose_a ? a + first * stride_a + i : a + i * stride_a + first;
        add_row(width, terms, alpha, row, transpose_a ? stride_a : 1, block, transpose_b ? width : stride_b,
                c + i * stride_c + left);
      }
    }
  }
}

void plain_solve(bool transpose, std::int64_t n, std::int64_t columns, const double* l,
                 std::int64_t stride_l, double* b, std::int64_t stride_b) {
  // Subtracts the rows that are solved, `from` to `to`, from those that are not, `begin` to `end`.
  const auto subtract = [&](std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to) {
    plain_gemm(transpose, false, end - begin, columns, to - from, -1.0,
               transpose ? l + from * stride_l + begin : l + begin * stride_l + from, stride_l,
               b + from * stride_b, stride_b, 1.0, b + begin * stride_b, stride_b);
  };
  const std::int64_t blocks = (n + kPlainTerms - 1) / kPlainTerms;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t begin = (transpose ? blocks - 1 - block : block) * kPlainTerms;
    const std::int64_t end = std::min(n, begin + kPlainTerms);
    transpose ? subtract(begin, end, end, n) : subtract(begin, end, 0, begin);
    for (std::int64_t done = 0; done < end - begin; ++done) {
      const std::int64_t i = transpose ? end - 1 - done : begin + done;
      transpose ? subtract(i, i + 1, i + 1, end) : subtract(i, i + 1, begin, i);
      for (std::int64_t j = 0; j < columns; ++j) b[i * stride_b + j] /= l[i * stride_l + i];
    }
  }
}

/// Returns the row, from 1, at which the factorisation fails, or 0.
int plain_cholesky(std::int64_t n, double* a, std::int64_t stride) {
  for (std::int64_t begin = 0; begin < n; begin += kPlainTerms) {
    const std::int64_t end = std::min(n, begin + kPlainTerms);
    const auto subtract = [&](std::int64_t row, std::int64_t rows, std::int64_t columns) {
      plain_gemm(false, true, rows, columns, begin, -1.0, a + row * stride, stride, a + begin * stride,
                 stride, 1.0, a + row * stride + begin, stride);
    };
    for (std::int64_t i = begin; i < end; ++i) subtract(i, 1, i + 1 - begin);  // not above the diagonal
    subtract(end, n - end, end - begin);
    for (std::int64_t j = begin; j < end; ++j) {
      const double* const above = a + j * stride;
      for (std::int64_t i = j; i < n; ++i) {
        double* const row = a + i * stride;
        for (std::int64_t k = begin; k < j; ++k) row[j] -= row[k] * above[k];
        if (i > j) {
          row[j] /= above[j];
        } else {
          if (!(row[j] > 0.0)) return narrowed(j + 1);
          row[j] = std::sqrt(row[j]);
        }
      }
    }
  }
  return 0;
}

/// Returns the row, from 1, at which the inverse fails, or 0.
int plain_inverse(std::int64_t n, double* l, std::int64_t stride) {
  std::vector<double> inverse(n * n);  // of L
  for (std::int64_t i = 0; i < n; ++i) {
    if (l[i * stride + i] == 0.0) return narrowed(i + 1);
    inverse[i * n + i] = 1.0;
  }
  plain_solve(false, n, n, l, stride, inverse.data(), n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double* const row = inverse.data() + i * n;
    plain_gemm(true, false, 1, i + 1, n - i, 1.0, row + i, n, row, n, 0.0, l + i * stride, stride);
  }
  return 0;
}

int leading(std::int64_t stride) {
  return narrowed(stride < 1 ? 1 : stride);
}

/// Replaces the lower triangle by the plain loops or the library's routine. Returns the row, from 1, at
/// which that fails, or 0.
int failing_row(decltype(plain_cholesky)* plain, decltype(dpotrf_)* routine, std::int64_t n, double* a,
                std::int64_t stride) {
  if (n == 0) return 0;
  stay_on_this_thread();
  const char upper = 'U';
  const int order = narrowed(n);
  const int lda = leading(stride);
  int info = 0;
  if (is_plain()) return plain(n, a, stride);
  routine(&upper, &order, a, &lda, &info);
  return info;
}

char letter(Transpose transpose) {
  return transpose == Transpose::kYes ? 'T' : 'N';
}
char opposite(Transpose transpose) {
  return transpose == Transpose::kYes ? 'N' : 'T';
}

void call_gemm(char ta, char tb, int m, int n, int k, double alpha, const double* a, int lda,
               const double* b, int ldb, double beta, double* c, int ldc) {
  dgemm_(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

void call_gemm(char ta, char tb, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
               int ldb, float beta, float* c, int ldc) {
  sgemm_(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

}  // namespace

template <class Number>
void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t rows, std::int64_t columns,
          std::int64_t inner, Number alpha, const Number* a, std::int64_t stride_a, const Number* b,
          std::int64_t stride_b, Number beta, Number* c, std::int64_t stride_c) {
  if (rows == 0 || columns == 0) return;
  if (is_plain()) {
    plain_gemm(transpose_a == Transpose::kYes, transpose_b == Transpose::kYes, rows, columns, inner, alpha,
               a, stride_a, b, stride_b, beta, c, stride_c);
    return;
  }
  stay_on_this_thread();
  // Cᵀ = op(B)ᵀ op(A)ᵀ, and the transposes of row-major matrices are what column-major code sees.
  call_gemm(letter(transpose_b), letter(transpose_a), narrowed(columns), narrowed(rows), narrowed(inner),
            alpha, b, leading(stride_b), a, leading(stride_a), beta, c, leading(stride_c));
}

template void gemm(Transpose, Transpose, std::int64_t, std::int64_t, std::int64_t, double, const double*,
                   std::int64_t, const double*, std::int64_t, double, double*, std::int64_t);
template void gemm(Transpose, Transpose, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                   std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);

void add_gram(std::int64_t begin, std::int64_t end, std::int64_t rows, double alpha, const double* a,
              const double* b, std::int64_t stride, double* c, std::int64_t stride_c) {
  // libtorch_cpu exports no syrk; panels leave out most of the upper half.
  gemm(Transpose::kYes, Transpose::kNo, end - begin, end, rows, alpha, a + begin, stride, b, stride, 1.0,
       c + begin * stride_c, stride_c);
}

void gemv(Transpose transpose_a, std::int64_t rows, std::int64_t columns, double alpha, const double* a,
          std::int64_t stride_a, const double* x, double beta, double* y) {
  const std::int64_t outputs = transpose_a == Transpose::kYes ? columns : rows;
  if (outputs == 0) return;
  if ((transpose_a == Transpose::kYes ? rows : columns) == 0) {
    // The reference BLAS returns early here and would leave y unscaled.
    for (std::int64_t i = 0; i < outputs; ++i) y[i] = beta == 0.0 ? 0.0 : beta * y[i];
    return;
  }
  if (is_plain()) {
    // yᵀ = xᵀ op(A)ᵀ
    plain_gemm(false, transpose_a == Transpose::kNo, 1, outputs, rows + columns - outputs, alpha, x, 1, a,
               stride_a, beta, y, outputs);
    return;
  }
  stay_on_this_thread();
  const char transpose = opposite(transpose_a);
  const int m = narrowed(columns);
  const int n = narrowed(rows);
  const int lda = leading(stride_a);
  const int one = 1;
  dgemv_(&transpose, &m, &n, &alpha, a, &lda, x, &one, &beta, y, &one);
}

void solve_lower(Transpose transpose, std::int64_t n, std::int64_t columns, const double* l,
                 std::int64_t stride_l, double* b, std::int64_t stride_b) {
  if (n == 0 || columns == 0) return;
  if (is_plain()) {
    plain_solve(transpose == Transpose::kYes, n, columns, l, stride_l, b, stride_b);
    return;
  }
  stay_on_this_thread();
  // Row-major L X = B is X ᵀLᵀ = Bᵀ in column-major terms: Lᵀ, there upper triangular, is on the right.
  const char side = 'R';
  const char upper = 'U';
  const char transposed = letter(transpose);
  const char diagonal = 'N';
  const int m = narrowed(columns);
  const int order = narrowed(n);
  const double one = 1.0;
  const int lda = leading(stride_l);
  const int ldb = leading(stride_b);
  dtrsm_(&side, &upper, &transposed, &diagonal, &m, &order, &one, l, &lda, b, &ldb);
}

void cholesky(std::int64_t n, double* a, std::int64_t stride_a) {
  // Column-major Uᵀ U with U in the upper triangle is row-major L Lᵀ with L in the lower one.
  if (const int row = failing_row(plain_cholesky, dpotrf_, n, a, stride_a); row != 0) {
    throw_error<NumericError>(
        "A {0} x {0} matrix is not positive definite: its Cholesky factorisation fails at row {1}.", n,
        row);
  }
}

void inverse_from_cholesky(std::int64_t n, double* l, std::int64_t stride_l) {
  if (const int row = failing_row(plain_inverse, dpotri_, n, l, stride_l); row != 0)
    throw_error<NumericError>("A Cholesky factor of size {} has a zero on its diagonal, at row {}.", n,
                              row);
}

double length(double x, double y) {
  // The bits of hypot differ between CPUs; those of the root, which takes no care of overflow, do not.
  return is_plain() ? std::sqrt(x * x + y * y) : std::hypot(x, y);
}

std::string restriction() {
  if (is_plain()) return fmt::format("{} = {}", kLibrary, kPlain);
  const std::string_view value = restricting_value();
  return value.empty() ? "" : fmt::format("{} = {}", kRestrictedBy, value);
}

#if OLRANK_OPENBLAS

void compute_as_on_any_cpu() {
  // Its own kernels for every CPU round by where in memory a matrix begins.
  plain_loops() = true;
  own_functions = true;
}

std::string library_name() {
  if (is_plain()) return "olrank's plain loops";
  // "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Zen MAX_THREADS=64"
  const std::string_view text = openblas_get_config();
  return fmt::format("{} for {}", text.substr(0, text.find(' ', text.find(' ') + 1)),
                     openblas_get_corename());
}

#else

void compute_as_on_any_cpu() {
  // MKL reads the variable at its first call. libtorch_cpu exports no function for it.
  if (!is_plain()) setenv(kRestrictedBy, "COMPATIBLE", 1);
  own_functions = true;
}

std::string library_name() {
  if (is_plain()) return "olrank's plain loops";
  char buffer[256] = {};
  MKL_Get_Version_String(buffer, sizeof buffer - 1);
  // "Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for …"
  const std::string_view text(buffer, strnlen(buffer, sizeof buffer));
  constexpr std::string_view kBefore = "Version ";
  const std::size_t begin = text.find(kBefore);
  if (begin == std::string_view::npos) return std::string(text);
  const std::string_view version = text.substr(begin + kBefore.size());
  const std::string_view value = restricting_value();
  return fmt::format("MKL {}{}", version.substr(0, version.find_first_of("- ")),
                     value.empty() ? "" : fmt::format(" with {}={}", kRestrictedBy, value));
}

#endif

}  // namespace olrank::blas
