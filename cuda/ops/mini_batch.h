#pragma once

#include <cstdint>

#include "core/ops/pair_training.h"
#include "cuda/ops/optimizer_step.h"
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

/// Where a member's training stands. It lies on the device and moves on there, so that what is done with a
/// batch can be recorded once.
struct BatchCursor {
  const std::int32_t* order = nullptr;  // numbers of the observations of this batch and those that follow
  std::int64_t number = 1;              // of this batch
  StepRates rates;                      // of its step
};

/// A training's first bad loss, in doubles on the device: the number of its step, before which it is 0, and
/// the loss.
struct BadLoss {
  double* number = nullptr;
  double* loss = nullptr;
};

/// cursors [members] of trainings whose orders lie one after another, `per_member` numbers each.
void begin_batches(Stream stream, std::int64_t members, const std::int32_t* order, std::int64_t per_member,
                   const StepRates& rates, BatchCursor* cursors);

/// Notes the loss where it is no number, and moves on behind `count` observations. corrections [steps + 1]
/// are the rates of all steps of a training, whose decay counts for nothing.
void finish_batch(Stream stream, std::int64_t count, const double* loss, const StepRates* corrections,
                  BatchCursor* cursor, const BadLoss& bad);

/// The incidence of a batch of up to `pairs`.
void fill_batch_incidence(Stream stream, std::int64_t pairs, const PairIncidence& incidence);

/// features [2 count × d] and terms [count] of the next `count` observations. A pair's repetitions share
/// the noise of its label evenly.
void gather_batch(Stream stream, const BatchSource& source, const BatchCursor* cursor, std::int64_t count,
                  float* features, PairTerm* terms);

/// Notes NaN as the loss of this batch where a score [docs] is no number.
void note_bad_scores(Stream stream, const BatchCursor* cursor, std::int64_t docs, const float* scores,
                     const BadLoss& bad);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
