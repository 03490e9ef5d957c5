#include "core/ops/blas.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

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

int leading(std::int64_t stride) {
  return narrowed(stride < 1 ? 1 : stride);
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
  if (n == 0) return;
  stay_on_this_thread();
  // Column-major Uᵀ U with U in the upper triangle is row-major L Lᵀ with L in the lower one.
  const char upper = 'U';
  const int order = narrowed(n);
  const int lda = leading(stride_a);
  int info = 0;
  dpotrf_(&upper, &order, a, &lda, &info);
  if (info != 0) {
    throw_error<NumericError>(
        "A {0} x {0} matrix is not positive definite: its Cholesky factorisation fails at row {1}.", n,
        info);
  }
}

void inverse_from_cholesky(std::int64_t n, double* l, std::int64_t stride_l) {
  if (n == 0) return;
  stay_on_this_thread();
  const char upper = 'U';
  const int order = narrowed(n);
  const int lda = leading(stride_l);
  int info = 0;
  dpotri_(&upper, &order, l, &lda, &info);
  if (info != 0) {
    throw_error<NumericError>("A Cholesky factor of size {} has a zero on its diagonal, at row {}.", n,
                              info);
  }
}

std::string restriction() {
  const std::string_view value = restricting_value();
  return value.empty() ? "" : fmt::format("{} = {}", kRestrictedBy, value);
}

#if OLRANK_OPENBLAS

void compute_as_on_any_cpu() {
  // Its kernels for every CPU round by where in memory a matrix begins.
  throw_error<InvalidArgument>(
      "same_bits_on = \"any-cpu\" needs MKL, and this program was built on OpenBLAS: use a build with "
      "LibTorch, or -DOLRANK_BLAS=mkl_rt.");
}

std::string library_name() {
  // "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Zen MAX_THREADS=64"
  const std::string_view text = openblas_get_config();
  return fmt::format("{} for {}", text.substr(0, text.find(' ', text.find(' ') + 1)),
                     openblas_get_corename());
}

#else

void compute_as_on_any_cpu() {
  // MKL reads the variable at its first call. libtorch_cpu exports no function for it.
  setenv(kRestrictedBy, "COMPATIBLE", 1);
}

std::string library_name() {
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
