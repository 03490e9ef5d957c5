#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/covariance/covariance_checks.h"
#include "core/io/state_archive.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/execution_context.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/resident_posterior.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Adds drift checks, rebuilds and form switching to a posterior.
class WatchedPosterior {
 public:
  WatchedPosterior(const PosteriorSpec& spec, Products& products);

  void gram(Stream stream, const FactorRows& docs, double* m) { posterior_->gram(stream, docs, m); }
  /// Observes pairs [count], on the device, of the documents of the latest gram(), whose result is m; more
  /// than one batch of them overwrites m.
  void observe(Stream stream, const FactorRows& docs, double* m, const PreferencePair* pairs,
               std::int64_t count);
  /// Call it after observe(). If the drift is due to be measured, waits, and rebuilds or throws.
  void check_drift(Stream stream);
  bool check_is_due() const { return monitor_.is_due(); }
  /// Rebuilds after an answer that rounding has spoiled; NumericError if the answer before was spoiled too.
  void repair(Stream stream);
  /// It has to be called after a good answer.
  void trust() { rebuilt_ = false; }
  void switch_to_primal();

  const CovarianceStatus* status() const { return posterior_->status(); }
  /// The drift of the latest check; before the first it is measured, which waits. Warns once if it is
  /// beyond the bound.
  double drift(Stream stream);
  const PosteriorSpec& spec() const { return posterior_->spec(); }
  std::int64_t bytes() const { return posterior_->bytes(); }

  void save(StateWriter& state) const;
  void load(Stream stream, StateReader& state);

 private:
  CovarianceName name() const { return {spec().name(), posterior_->pairs(), spec().lambda}; }
  void rebuild(Stream stream, std::string_view why);
  double measured_drift(Stream stream);

  Products* products_;
  std::unique_ptr<ResidentPosterior> posterior_;
  DriftMonitor monitor_;
  bool rebuilt_ = false;  // since the latest good answer
  std::optional<double> latest_drift_;
};

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
