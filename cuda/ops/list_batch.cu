#include "cuda/ops/list_batch.h"

#include "cuda/runtime/launch_each.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kPartsOfQuery = 8;

// blockIdx.x is the query, whose numbers the threads of its kPartsOfQuery blocks take in turn.
__global__ void __launch_bounds__(kThreads)
    gather_lists_kernel(const ListBatch batch, std::int64_t columns, const float* features,
                        const std::uint8_t* grades, float* batch_features, std::uint8_t* batch_grades) {
  const std::int64_t query = blockIdx.x;
  const std::int64_t begin = query == 0 ? 0 : batch.ends[query - 1];
  const std::int64_t docs = batch.ends[query] - begin;
  const std::int64_t first = batch.first_docs[query];
  const std::int64_t thread = std::int64_t{blockIdx.y} * kThreads + threadIdx.x;
  constexpr std::int64_t kStep = std::int64_t{kPartsOfQuery} * kThreads;
  for (std::int64_t doc = thread; doc < docs; doc += kStep) batch_grades[begin + doc] = grades[first + doc];
  if (features == nullptr) return;
  const float* from = features + first * columns;
  float* to = batch_features + begin * columns;
  for (std::int64_t i = thread; i < docs * columns; i += kStep) to[i] = from[i];
}

// A thread owns a number.
__global__ void __launch_bounds__(kThreads)
    add_numbers_kernel(std::int64_t count, const double* numbers, double* sum) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) sum[i] += numbers[i];
}

}  // namespace

void gather_lists(Stream stream, const ListBatch& batch, std::int64_t columns, const float* features,
                  const std::uint8_t* grades, float* batch_features, std::uint8_t* batch_grades) {
  if (batch.queries == 0) return;
  launch(gather_lists_kernel, dim3{static_cast<unsigned>(batch.queries), kPartsOfQuery}, dim3{kThreads}, 0,
         stream, batch, columns, features, grades, batch_features, batch_grades);
}

void add_numbers(Stream stream, std::int64_t count, const double* numbers, double* sum) {
  launch_each<kThreads>(add_numbers_kernel, count, 1, stream, count, numbers, sum);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
