#include "cuda/runtime/products.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/runtime/log.h"
#include "cuda/runtime/check.h"

namespace olrank::cuda {
namespace {

// Sums that are split into parts leave each part's matrix here.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;
constexpr int kCandidates = 16;

void check_library(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) check(cudaErrorMemoryAllocation, call);
  throw CudaError(fmt::format("{} failed: {}.", call, cublasLtGetStatusName(status)));
}
#define OLRANK_PRODUCT_CHECK(call) check_library((call), #call)

std::string version_name(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10'000, version % 10'000 / 100, version % 100);
}

/// The types of one kind of product.
struct Arithmetic {
  cudaDataType_t number;
  cublasComputeType_t compute;
  std::int64_t bytes;

  friend auto operator<=>(const Arithmetic&, const Arithmetic&) = default;
};

Arithmetic arithmetic_of(const float* /*a*/) {
  return {CUDA_R_32F, CUBLAS_COMPUTE_32F, sizeof(float)};
}
Arithmetic arithmetic_of(const double* /*a*/) {
  return {CUDA_R_64F, CUBLAS_COMPUTE_64F, sizeof(double)};
}

/// It describes a matrix as the library sees it: column-major, so that a row-major one is its transpose.
class Layout {
 public:
  Layout(const Arithmetic& arithmetic, const StoredSides& sides, const MatrixPlaces& places,
         std::int64_t batch) {
    OLRANK_PRODUCT_CHECK(cublasLtMatrixLayoutInit(&opaque_, arithmetic.number,
                                                  static_cast<std::uint64_t>(sides.columns),
                                                  static_cast<std::uint64_t>(sides.rows), places.stride));
    const auto count = static_cast<std::int32_t>(batch);
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, places.step);
  }
  cublasLtMatrixLayout_t get() { return &opaque_; }

 private:
  template <class Value>
  void set(cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
    OLRANK_PRODUCT_CHECK(cublasLtMatrixLayoutSetAttribute(&opaque_, attribute, &value, sizeof value));
  }

  cublasLtMatrixLayoutOpaque_t opaque_{};
};

/// A product as the library sees it: Cᵀ = op(B)ᵀ op(A)ᵀ.
class Description {
 public:
  Description(const Arithmetic& arithmetic, const ProductShape& shape)
      : a_(arithmetic, sides_of_a(shape), shape.a, shape.batch),
        b_(arithmetic, sides_of_b(shape), shape.b, shape.batch),
        c_(arithmetic, {shape.rows, shape.columns}, shape.c, shape.batch) {
    OLRANK_PRODUCT_CHECK(cublasLtMatmulDescInit(&opaque_, arithmetic.compute, arithmetic.number));
    set(CUBLASLT_MATMUL_DESC_TRANSA, shape.transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, shape.transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    const bool biased = shape.bias >= 0;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE,
        biased ? (shape.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
               : (shape.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT));
    if (!biased) return;
    set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, shape.b.step);
    // Algorithms are chosen by the alignment of this address.
    point_to_bias(reinterpret_cast<const void*>(bias_alignment_of(shape, arithmetic.bytes)));
  }

  void point_to_bias(const void* bias) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }
  cublasLtMatmulDesc_t operation() { return &opaque_; }
  cublasLtMatrixLayout_t a() { return a_.get(); }
  cublasLtMatrixLayout_t b() { return b_.get(); }
  cublasLtMatrixLayout_t c() { return c_.get(); }

 private:
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    OLRANK_PRODUCT_CHECK(cublasLtMatmulDescSetAttribute(&opaque_, attribute, &value, sizeof value));
  }

  Layout a_;
  Layout b_;
  Layout c_;
  cublasLtMatmulDescOpaque_t opaque_{};
};

/// Only in double: a covariance's products have a long sum for each of few numbers.
bool may_split(const Arithmetic& arithmetic) {
  return arithmetic.number == CUDA_R_64F;
}

template <class Value>
void prefer(cublasLtMatmulPreferenceOpaque_t& wishes, cublasLtMatmulPreferenceAttributes_t attribute,
            Value value) {
  OLRANK_PRODUCT_CHECK(cublasLtMatmulPreferenceSetAttribute(&wishes, attribute, &value, sizeof value));
}

cublasLtMatmulPreferenceOpaque_t wishes_for(const Arithmetic& arithmetic, const ProductShape& shape) {
  cublasLtMatmulPreferenceOpaque_t wishes{};
  OLRANK_PRODUCT_CHECK(cublasLtMatmulPreferenceInit(&wishes));
  prefer(wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kWorkspaceBytes));
  // Parts that are added in the type of the sums have an order, unlike those that are added in place.
  prefer(wishes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(may_split(arithmetic) ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                                          : CUBLASLT_REDUCTION_SCHEME_NONE));
  const auto aligned = [&](const MatrixPlaces& places) {
    return static_cast<std::uint32_t>(alignment_of(places, arithmetic.bytes));
  };
  // Our B is the library's A.
  prefer(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned(shape.b));
  prefer(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned(shape.a));
  prefer(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned(shape.c));
  prefer(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned(shape.c));
  return wishes;
}

bool splits_sums(const cublasLtMatmulAlgo_t& algorithm) {
  std::int32_t parts = 1;
  std::size_t written = 0;
  OLRANK_PRODUCT_CHECK(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                            &parts, sizeof parts, &written));
  return parts > 1;
}

/// The library's first choice, for float32 among algorithms whose sums are not split; none if it has none.
std::optional<cublasLtMatmulAlgo_t> choose(cublasLtHandle_t library, const Arithmetic& arithmetic,
                                           const ProductShape& shape) {
  Description product(arithmetic, shape);
  cublasLtMatmulPreferenceOpaque_t wishes = wishes_for(arithmetic, shape);
  cublasLtMatmulHeuristicResult_t found[kCandidates];
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(library, product.operation(), product.b(), product.a(), product.c(),
                                     product.c(), &wishes, kCandidates, found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
  check_library(status, "cublasLtMatmulAlgoGetHeuristic");
  for (int i = 0; i < count; ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS && (may_split(arithmetic) || !splits_sums(found[i].algo)))
      return found[i].algo;
  }
  return std::nullopt;
}

bool serves(cublasLtHandle_t library, const Arithmetic& arithmetic, const ProductShape& shape,
            const cublasLtMatmulAlgo_t& algorithm) {
  Description product(arithmetic, shape);
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(library, product.operation(), product.b(), product.a(), product.c(),
                              product.c(), &algorithm, &result);
  return status == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= static_cast<std::size_t>(kWorkspaceBytes);
}

/// How a batch is multiplied.
struct Plan {
  cublasLtMatmulAlgo_t algorithm;
  bool one_by_one = false;  // the algorithm cannot do it at once
};

}  // namespace

struct ProductPlans::State {
  using Key = std::pair<Arithmetic, ProductShape>;

  cublasLtHandle_t library = nullptr;
  std::map<Key, std::optional<cublasLtMatmulAlgo_t>> algorithms;  // of buckets
  std::map<Key, Plan> plans;

  cublasLtMatmulAlgo_t algorithm_of(const Arithmetic& arithmetic, const ProductShape& single) {
    const ProductShape bucket = bucket_of(single, arithmetic.bytes);
    const auto [entry, is_new] = algorithms.try_emplace({arithmetic, bucket});
    if (is_new) entry->second = choose(library, arithmetic, bucket);
    if (entry->second && serves(library, arithmetic, single, *entry->second)) return *entry->second;
    if (const auto own = choose(library, arithmetic, single)) return *own;
    throw CudaError(fmt::format(
        "cuBLASLt has no algorithm for a product of {} × {} by {} × {} numbers on this GPU: use --device "
        "cpu.",
        single.rows, single.inner, single.inner, single.columns));
  }

  const Plan& plan(const Arithmetic& arithmetic, const ProductShape& shape, Stream stream) {
    const Key key{arithmetic, shape};
    if (const auto known = plans.find(key); known != plans.end()) return known->second;
    cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
    OLRANK_CUDA_CHECK(cudaStreamIsCapturing(stream, &recording));
    if (recording != cudaStreamCaptureStatusNone)
      throw CudaError("A product was to be recorded that has not been computed before.");
    ProductShape single = shape;
    single.batch = 1;
    Plan made{algorithm_of(arithmetic, single)};
    made.one_by_one = shape.batch > 1 && !serves(library, arithmetic, shape, made.algorithm);
    return plans.emplace(key, made).first->second;
  }

  template <class Number>
  void multiply(Stream stream, std::byte* workspace, const ProductShape& shape, const Number* a,
                const Number* b, Number* c, ProductScales scales) {
    check_product(shape);
    if (shape.rows == 0 || shape.columns == 0 || shape.batch == 0) return;
    const Arithmetic arithmetic = arithmetic_of(a);
    const Plan& made = plan(arithmetic, shape, stream);
    ProductShape at_once = shape;
    if (made.one_by_one) at_once.batch = 1;
    Description product(arithmetic, at_once);
    const auto alpha = static_cast<Number>(scales.alpha);
    const auto beta = static_cast<Number>(scales.beta);
    for (std::int64_t i = 0; i < shape.batch; i += at_once.batch) {
      const Number* left = a + shape.a.offset + i * shape.a.step;
      const Number* right = b + i * shape.b.step;
      Number* out = c + shape.c.offset + i * shape.c.step;
      if (shape.bias >= 0) product.point_to_bias(right + shape.bias);
      OLRANK_PRODUCT_CHECK(cublasLtMatmul(library, product.operation(), &alpha, right + shape.b.offset,
                                          product.b(), left, product.a(), &beta, out, product.c(), out,
                                          product.c(), &made.algorithm, workspace,
                                          static_cast<std::size_t>(kWorkspaceBytes), stream));
    }
  }
};

ProductPlans::ProductPlans() : state_(std::make_unique<State>()) {
  OLRANK_PRODUCT_CHECK(cublasLtCreate(&state_->library));
}

ProductPlans::~ProductPlans() {
  cublasLtDestroy(state_->library);
}

Products::Products(ProductPlans& plans, Stream stream)
    : plans_(&plans), stream_(stream), workspace_(kWorkspaceBytes) {}

void Products::multiply(const ProductShape& shape, const float* a, const float* b, float* c,
                        ProductScales scales) {
  start_in_turn(stream_, [=, this](Stream stream) {
    plans_->state_->multiply(stream, workspace_.data(), shape, a, b, c, scales);
  });
}

void Products::multiply(const ProductShape& shape, const double* a, const double* b, double* c,
                        ProductScales scales) {
  start_in_turn(stream_, [=, this](Stream stream) {
    plans_->state_->multiply(stream, workspace_.data(), shape, a, b, c, scales);
  });
}

DeviceLibrary product_library() {
  return {"cuBLASLt", version_name(cublasLtGetVersion()), version_name(CUBLAS_VERSION)};
}

}  // namespace olrank::cuda
