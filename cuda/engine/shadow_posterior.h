#pragma once

#include <cstdint>
#include <span>

#include "cuda/engine/growing_array.h"
#include "cuda/engine/watched_posterior.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A full covariance beside the one that decides: it takes in the same pairs and is asked about the few
/// documents that were shown.
class ShadowPosterior {
 public:
  ShadowPosterior(DeviceCovariance covariance, const ResidentPosteriorSpec& spec, Stream stream);

  /// Takes in pairs [count], on the device, of a query's documents.
  void observe(Stream stream, const FactorRows& docs, const PreferencePair* pairs, std::int64_t count);
  /// M, lower triangle, of the chosen ones among a query's documents; waits.
  std::span<const double> m_of(Stream stream, const FactorRows& docs, std::span<const std::int32_t> chosen);

  WatchedPosterior& posterior() { return posterior_; }
  const WatchedPosterior& posterior() const { return posterior_; }
  std::int64_t bytes() const;

 private:
  // Of one observed batch: as many as a posterior's replay takes.
  static constexpr std::int64_t kBatch = 64;

  /// Factors of documents two by two, next to each other.
  FactorRows gather(Stream stream, const FactorRows& docs, const std::int32_t* pairs, std::int64_t count);

  NetworkShape shape_;
  WatchedPosterior posterior_;
  DeviceArray<PreferencePair> places_;  // of gathered pairs: 0 before 1, 2 before 3, …
  GrowingArray<std::int32_t> chosen_;
  GrowingArray<float> rows_;
  GrowingArray<double> m_;
  PinnedBytes chosen_here_;
  PinnedBytes m_here_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
