#pragma once

#include <cstdint>

#include "core/device/device_network.h"
#include "core/ops/pair_training.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Copies documents to `inputs` [docs × features], with `scale` each column's values as shares of their
/// range. `bad` becomes the least it was and has met: the number of a value that is not finite, or of
/// one beyond ±limit plus docs × features. Both are on the device.
void query_inputs(Stream stream, const GivenDocs& given, bool scale, float limit, float* inputs,
                  unsigned long long* bad);

// Batches of whole queries with grades. All arrays are on the device.

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

// Adds a round to the history, from one packet sent by the host. All arrays are on the device.

/// to [count × features] = rows numbers [count] of `from`.
void gather_docs(Stream stream, const float* from, std::int64_t features, const std::int64_t* numbers,
                 std::int64_t count, float* to);

/// terms[changed[i].index] = changed[i].term.
void write_terms(Stream stream, const DeviceUpdate::Term* changed, std::int64_t count, PairTerm* terms);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
