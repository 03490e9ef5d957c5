#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/tangent_shape.h"
#include "core/runtime/execution_context.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/watched_posterior.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A full covariance next to the one that decides: it observes the same pairs and gives exact widths of the
/// few documents that were shown.
class ShadowPosterior {
 public:
  ShadowPosterior(const PosteriorSpec& spec, Products& products);

  /// Observes pairs [count], on the device, of a query's documents.
  void observe(Stream stream, const FactorRows& docs, const PreferencePair* pairs, std::int64_t count);
  /// w² [chosen × chosen] of the chosen ones among a query's documents; waits. Valid until the next call.
  std::span<const double> width_sq(ExecutionContext& context, Stream stream, const FactorRows& docs,
                                   std::span<const std::int32_t> chosen);

  WatchedPosterior& posterior() { return posterior_; }
  const WatchedPosterior& posterior() const { return posterior_; }
  std::int64_t bytes() const;

 private:
  // Pairs of one observed batch, as many as a batch of ResidentPairs::replay().
  static constexpr std::int64_t kBatch = 64;

  /// M, lower triangle, of the chosen ones; waits.
  std::span<const double> m_of(Stream stream, const FactorRows& docs, std::span<const std::int32_t> chosen);
  /// The factors of pairs of documents, two rows next to each other.
  FactorRows gather(Stream stream, const FactorRows& docs, const std::int32_t* pairs, std::int64_t count);

  TangentShape shape_;
  WatchedPosterior posterior_;
  DeviceArray<PreferencePair> places_;  // of gathered pairs: 0 before 1, 2 before 3, …
  GrowingArray<std::int32_t> chosen_;
  GrowingArray<float> rows_;
  GrowingArray<double> m_;
  PinnedBytes host_chosen_;
  PinnedBytes host_m_;
  std::vector<double> width_sq_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
