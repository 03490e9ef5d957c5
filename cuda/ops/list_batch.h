#pragma once

#include <cstdint>

#include "cuda/runtime/stream.h"

// Batches of whole queries with grades. All arrays are on the device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The queries of a batch among all documents.
struct ListBatch {
  std::int64_t queries = 0;
  const std::int64_t* first_docs = nullptr;  // [queries], among all documents
  const std::int64_t* ends = nullptr;        // [queries], within the batch
};

/// Copies the batch's documents next to each other: grades, and features [docs × columns] unless they are
/// null.
void gather_lists(Stream stream, const ListBatch& batch, std::int64_t columns, const float* features,
                  const std::uint8_t* grades, float* batch_features, std::uint8_t* batch_grades);

/// sum [count] += numbers [count].
void add_numbers(Stream stream, std::int64_t count, const double* numbers, double* sum);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
