#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/math/normal.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/clickgp/click_features.h"
#include "models/clickgp/click_memory.h"

namespace olrank {

/// The site that a belief finds for a query's remembered documents.
struct ClickSite {
  std::vector<double> model;  // [s] m
  std::vector<double> departure;
  AlignedVector<double> curvature;
  AlignedVector<double> evidence;
  QuerySite site;
};

/// The documents at hand in the eyes of one click model.
struct ClickView {
  /// [R × D] features: of the V documents, and then of others that are remembered as they were.
  AlignedVector<double> rows;
  std::vector<double> model;       // [R] m
  std::vector<double> scores;      // [V] m + u
  std::vector<double> curvature;   // [V] h; 0 for documents that were never shown
  AlignedVector<double> pull;      // [D] Σ h φ over the remembered documents
  std::vector<double> departures;  // u of the remembered documents
  double coupling = 0.0;           // ρ
  double query_departure = 0.0;    // b
  // Memory that stays from query to query.
  ClickSite site;
  AlignedVector<double> weights;  // [R] h of the remembered documents by their rows
};

/// A draw of scores is the sum of two independent ones, [V] each: `common` by θ, and `own` by what the
/// documents keep to themselves, of which `other` is another draw by the same law.
struct ScoreDraw {
  std::vector<double> common;
  std::vector<double> own;
  std::vector<double> other;
  // Memory that stays from query to query: the draw of θ − θ̂, and what it does to scores.
  AlignedVector<double> shift;
  AlignedVector<double> moved;
};

/// One click model believes this: logit P(click | looked at) = φ·θ + u + b, θ ~ N(θ̂, (L Lᵀ)⁻¹).
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
  /// x ← (L Lᵀ)⁻¹ x.
  void divide_by_precision(std::span<double> x) const;
  void move(std::span<const double> direction, double step);
  void set_departures(const Departures& departures) { departures_ = departures; }

  /// φ·θ of rows.
  void score_rows(std::span<const double> rows, std::span<double> scores) const;

  /// The site of a query's documents with `found.model`, by at most `steps` steps from where the memory
  /// left it, with what was seen times `faded`.
  void find_site(const KnownQuery& known, std::size_t model, double faded, int steps, double least_step,
                 ClickSite& found) const;

  /// Finds the rest of a view whose rows and their m are there. `places` are those of its documents in the
  /// memory, −1 where it has none, and `known_rows` the rows of the remembered documents.
  void look(const KnownQuery* known, std::size_t model, std::span<const std::int32_t> places,
            std::span<const std::int32_t> known_rows, double faded, ClickView& view) const;

  /// Draws all documents' departures from their scores by the posterior, `scale` times as wide.
  void sample(const ClickView& view, double scale, PhiloxKey key, std::uint32_t round,
              ScoreDraw& draw) const;

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
