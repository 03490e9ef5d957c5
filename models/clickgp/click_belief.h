#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/runtime/aligned_vector.h"
#include "models/clickgp/click_features.h"
#include "models/clickgp/click_memory.h"
#include "models/clickgp/query_site.h"

namespace olrank {

/// The documents at hand in the eyes of one click model.
struct ClickView {
  AlignedVector<double> rows;      // [V × D] features
  std::vector<double> scores;      // [V] m + u
  std::vector<double> curvature;   // [V] h; 0 for documents that were never shown
  AlignedVector<double> pull;      // [D] Σ h φ over the remembered documents
  std::vector<double> departures;  // u of the remembered documents
  AlignedVector<double> known;     // [s × D] features of the remembered documents
  double coupling = 0.0;           // ρ
  double query_departure = 0.0;    // b
};

/// A query's remembered documents with their features, and the site that a belief finds for them.
struct ClickSite {
  AlignedVector<double> rows;  // [s × D]
  std::vector<double> model;   // [s] m
  std::vector<double> departure;
  AlignedVector<double> curvature;
  AlignedVector<double> evidence;
  QuerySite site;
};

/// What one click model believes: logit P(click | looked at) = φ·θ + u + b, θ ~ N(θ̂, (L Lᵀ)⁻¹).
class ClickBelief {
 public:
  explicit ClickBelief(const ClickFeatures& features);

  const ClickFeatures& features() const { return features_; }
  std::int64_t columns() const { return features_.columns(); }
  std::span<const double> theta() const { return theta_; }
  const Departures& departures() const { return departures_; }
  bool has_factor() const { return factor_ != nullptr; }
  const double* factor() const { return factor_->data(); }

  /// Takes Λ + diag λ, of whose lower triangle it makes the factor, and η.
  void solve(std::shared_ptr<AlignedVector<double>> precision, std::span<const double> evidence);
  /// Takes other products of inputs, of which it believes nothing yet where they differ. More of them need
  /// solve() before sample().
  void set_products(ProductPlaces products);
  void set_departures(const Departures& departures) { departures_ = departures; }

  /// φ·θ of rows.
  void score_rows(std::span<const double> rows, std::span<double> scores) const;

  /// The site of a query's documents, by at most `steps` steps from where the memory left it, with what was
  /// seen times `faded`. `found.rows` may hold the features of the first documents; the others are added.
  void find_site(const KnownQuery& known, std::size_t model, double faded, int steps, double least_step,
                 ClickSite& found) const;

  /// Finds the rest of a view whose rows are there. `places` are those of its documents in the memory, −1
  /// where it has none.
  void look(const KnownQuery* known, std::size_t model, std::span<const std::int32_t> places, double faded,
            ClickView& view) const;

  /// Adds to the scores a draw from the posterior of all documents' scores, `scale` times as wide.
  void sample(const ClickView& view, double scale, PhiloxKey key, std::uint32_t round,
              std::span<double> scores) const;

  /// The posterior variances of differences of scores between some documents, [docs × docs].
  void difference_variances(const ClickView& view, std::span<const std::int32_t> docs,
                            std::span<double> variances) const;

  void fields(StateFields& state, const std::string& prefix);

 private:
  ClickFeatures features_;
  AlignedVector<double> theta_;  // θ̂
  Departures departures_;
  std::shared_ptr<AlignedVector<double>> factor_;  // L, [D × D] by rows; null before the first solution
};

}  // namespace olrank
