#pragma once

#include <cstdint>

#include "core/ops/pair_training.h"
#include "cuda/ops/pair_incidence.h"
#include "cuda/runtime/stream.h"

// Batches of observed pairs, each in documents of its own: the i-th pair's are rows 2i and 2i + 1, so that
// which terms touch which document is the same in every batch. All arrays lie on the device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// What batches are taken from: the history.
struct BatchSource {
  const float* features = nullptr;  // [docs × d]
  std::int64_t columns = 0;         // d
  const PairTerm* terms = nullptr;
  const PairObservation* observations = nullptr;
  const double* labels = nullptr;   // of the terms, with a member's noise; may be null
  const double* changes = nullptr;  // weights of the observations; null: 1 each
};

/// The incidence of a batch of up to `pairs`.
void fill_batch_incidence(Stream stream, std::int64_t pairs, const PairIncidence& incidence);

/// features [2 count × d] and terms [count] of the observations whose numbers are order [count]. A pair's
/// repetitions share the noise of its label evenly.
void gather_batch(Stream stream, const BatchSource& source, const std::int32_t* order, std::int64_t count,
                  float* features, PairTerm* terms);

/// *first_number = `number` and *first_loss = *loss where it is the first loss that is no number;
/// *first_number is 0 before.
void note_bad_loss(Stream stream, std::int64_t number, const double* loss, double* first_number,
                   double* first_loss);

/// The same with NaN where a score [docs] is no number.
void note_bad_scores(Stream stream, std::int64_t number, std::int64_t docs, const float* scores,
                     double* first_number, double* first_loss);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
