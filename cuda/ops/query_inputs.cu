#include "cuda/ops/query_inputs.h"

#include <cmath>

#include "core/math/column_range.h"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kInputColumns = 32;  // of a block: a warp reads them of one row
constexpr unsigned kRows = 16;          // of a block at once
constexpr unsigned kInputThreads = kInputColumns * kRows;

// A block owns kInputColumns columns, and a thread every kRows-th row of one. Least and largest values
// depend on no order: column_range() takes both zeros for one.
__device__ void query_inputs_kernel(const Grid& grid, const GivenDocs& given, bool scale, float limit,
                                    float* inputs, unsigned long long* bad) {
  auto* low = dynamic_shared<float>();  // [kRows × kInputColumns]
  float* high = low + kInputThreads;
  const std::int64_t place = threadIdx.x % kInputColumns;
  const std::int64_t first = threadIdx.x / kInputColumns;
  const std::int64_t column = std::int64_t{grid.block.x} * kInputColumns + place;
  const std::int64_t docs = column < given.features ? given.docs : 0;
  float least = INFINITY;
  float largest = -INFINITY;
  for (std::int64_t doc = first; doc < docs; doc += kRows) {
    const float value = given.values[doc * given.stride + column];
    least = value < least ? value : least;
    largest = largest < value ? value : largest;
    if (fabsf(value) <= limit) continue;
    const std::int64_t number = doc * given.features + column;
    const bool finite = fabsf(value) < INFINITY;
    atomicMin(bad, static_cast<unsigned long long>(finite ? given.docs * given.features + number : number));
  }
  low[threadIdx.x] = least;
  high[threadIdx.x] = largest;
  __syncthreads();
  for (unsigned row = 0; row < kRows; ++row) {
    const float other_low = low[row * kInputColumns + place];
    const float other_high = high[row * kInputColumns + place];
    least = other_low < least ? other_low : least;
    largest = largest < other_high ? other_high : largest;
  }
  const ColumnRange range = column_range(least, largest);
  for (std::int64_t doc = first; doc < docs; doc += kRows) {
    const float value = given.values[doc * given.stride + column];
    inputs[doc * given.features + column] = scale ? share_of_range(value, range.low, range.width) : value;
  }
}

constexpr unsigned kBatchThreads = 256;
constexpr unsigned kPartsOfQuery = 8;

// grid.block.x is the query, whose numbers the threads of its kPartsOfQuery blocks take in turn.
__device__ void gather_lists_kernel(const Grid& grid, const ListBatch& batch, std::int64_t columns,
                                    const float* features, const std::uint8_t* grades,
                                    float* batch_features, std::uint8_t* batch_grades) {
  const std::int64_t query = grid.block.x;
  const std::int64_t begin = query == 0 ? 0 : batch.ends[query - 1];
  const std::int64_t docs = batch.ends[query] - begin;
  const std::int64_t first = batch.first_docs[query];
  const std::int64_t thread = std::int64_t{grid.block.y} * kBatchThreads + threadIdx.x;
  constexpr std::int64_t kStep = std::int64_t{kPartsOfQuery} * kBatchThreads;
  for (std::int64_t doc = thread; doc < docs; doc += kStep) batch_grades[begin + doc] = grades[first + doc];
  if (features == nullptr) return;
  const float* from = features + first * columns;
  float* to = batch_features + begin * columns;
  for (std::int64_t i = thread; i < docs * columns; i += kStep) to[i] = from[i];
}

// A thread owns a number.
__device__ void add_numbers_kernel(const Grid& grid, std::int64_t count, const double* numbers,
                                   double* sum) {
  const std::int64_t i = std::int64_t{grid.block.x} * kBatchThreads + threadIdx.x;
  if (i < count) sum[i] += numbers[i];
}

constexpr unsigned kHistoryThreads = 128;

// A block copies a document.
__device__ void gather_docs_kernel(const Grid& grid, const float* from, std::int64_t features,
                                   const std::int64_t* numbers, float* to) {
  const float* row = from + numbers[grid.block.x] * features;
  for (std::int64_t c = threadIdx.x; c < features; c += blockDim.x)
    to[grid.block.x * features + c] = row[c];
}

__device__ void write_terms_kernel(const Grid& grid, const DeviceUpdate::Term* changed, std::int64_t count,
                                   PairTerm* terms) {
  const std::int64_t i = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  if (i < count) terms[changed[i].index] = changed[i].term;
}

}  // namespace

void query_inputs(Stream stream, const GivenDocs& given, bool scale, float limit, float* inputs,
                  unsigned long long* bad) {
  if (given.docs == 0 || given.features == 0) return;
  launch(kernel<query_inputs_kernel, kInputThreads>, {parts_of(given.features, kInputColumns)},
         2 * kInputThreads * sizeof(float), stream, given, scale, limit, inputs, bad);
}

void gather_lists(Stream stream, const ListBatch& batch, std::int64_t columns, const float* features,
                  const std::uint8_t* grades, float* batch_features, std::uint8_t* batch_grades) {
  launch(kernel<gather_lists_kernel, kBatchThreads>, {batch.queries, kPartsOfQuery}, 0, stream, batch,
         columns, features, grades, batch_features, batch_grades);
}

void add_numbers(Stream stream, std::int64_t count, const double* numbers, double* sum) {
  launch_each(kernel<add_numbers_kernel, kBatchThreads>, count, 1, stream, count, numbers, sum);
}

void gather_docs(Stream stream, const float* from, std::int64_t features, const std::int64_t* numbers,
                 std::int64_t count, float* to) {
  launch(kernel<gather_docs_kernel, kHistoryThreads>, {count}, 0, stream, from, features, numbers, to);
}

void write_terms(Stream stream, const DeviceUpdate::Term* changed, std::int64_t count, PairTerm* terms) {
  launch_each(kernel<write_terms_kernel, kHistoryThreads>, count, 1, stream, changed, count, terms);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
