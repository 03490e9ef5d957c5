#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/normaliser.h"
#include "core/math/normal.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/clickgp/click_memory.h"
#include "models/files/model_scorer.h"

namespace olrank {

/// A click model has these inputs beside a constant and the score of a start model.
enum class ClickInputs { kNone, kLinear, kAdditive, kProducts };

/// Each product of two inputs has a place of its own; first < 0 in a free place. A place with second = −k
/// has the term √½ (2/k) cos(kπx) of the first.
using ProductPlaces = std::vector<InputPair>;

/// The model that a ranker started from.
struct ClickStart {
  /// Weights of inputs, of cosines if it has any, and of products, of which the numbers of the first and
  /// then of the second inputs follow. Empty for a model of another kind.
  std::vector<float> weights;
  std::shared_ptr<const ModelScorer> scorer;  // of that model, which takes the ranker's inputs
  std::string file;                           // its bytes, so that a saved ranker needs no other file

  /// The model of a file, whatever it is; `origin` names it in messages.
  static std::shared_ptr<const ClickStart> of_file(std::string file, const std::string& origin,
                                                   ModelCode code);
};

/// How a click model sees the documents of a query: by a constant, their inputs scaled to [0, 1] within the
/// query, for an additive model √½ (2/k) cos(kπx) of each input, k = 2, 3, 4, and the score of the model
/// that the ranker started from, if it did. All but the constant are centred within the query. Last come
/// products of two inputs, if it has any: (2x − 1)(2y − 1). A place without a pair has zeros.
class ClickFeatures {
 public:
  static constexpr std::int64_t kMostCosineInputs = 256;
  static constexpr std::int64_t kMostProducts = 32;
  static constexpr std::int64_t kPlacesAtOnce = 8;   // their number only grows
  static constexpr std::int64_t kMostOrdinary = 64;  // inputs beside a vector's that may have cosines

  /// `start` is a model to start from, null without one.
  ClickFeatures(std::int64_t inputs, ClickInputs used, std::shared_ptr<const ClickStart> start = {})
      : inputs_(inputs), used_(used), start_(std::move(start)) {
    if (used_ == ClickInputs::kProducts) products_ = std::make_shared<const ProductPlaces>();
  }

  /// Whether these are the weights of a model that one of so many inputs may start from.
  static bool is_start(std::span<const float> weights, std::int64_t inputs);

  std::int64_t inputs() const { return inputs_; }
  ClickInputs used() const { return used_; }
  bool is_additive() const { return used_ == ClickInputs::kAdditive || used_ == ClickInputs::kProducts; }
  /// With so many inputs that cosines would cost more than they tell, squares of single inputs are among
  /// the products.
  bool has_cosines() const {
    return used_ == ClickInputs::kAdditive ||
           (used_ == ClickInputs::kProducts && inputs_ <= kMostCosineInputs);
  }
  const ClickStart* start() const { return start_.get(); }
  /// Counts the numbers that are seen of a document: its scaled inputs, and the score of a start model that
  /// is no function of these.
  std::int64_t seen() const { return inputs_ + (start_ && start_->scorer ? 1 : 0); }
  /// Counts the columns of a row of features, the constant included.
  std::int64_t columns() const { return products_column() + (products_ ? std::ssize(*products_) : 0); }
  /// Counts them with all products that there may be.
  std::int64_t most_columns() const { return products_column() + (products_ ? most_places() : 0); }
  std::int64_t most_places() const {
    return kMostProducts + (has_cosines() ? 0 : HigherCosines::kTerms * kMostOrdinary);
  }
  /// The first one of a product; that of the start model's score is before it.
  std::int64_t products_column() const { return 1 + centred(); }
  /// Counts the columns of a row of means.
  std::int64_t centred() const { return terms() + (start_ ? 1 : 0); }
  /// The centred features but the start model's score.
  std::int64_t terms() const {
    if (used_ == ClickInputs::kNone) return 0;
    return inputs_ * (has_cosines() ? 1 + HigherCosines::kTerms : 1);
  }
  /// Null without any.
  const ProductPlaces* products() const { return products_.get(); }
  void set_products(ProductPlaces products) {
    products_ = std::make_shared<const ProductPlaces>(std::move(products));
  }

  /// The value that a place of products has for a document: a product, a cosine, or 0 if it is free.
  static double in_place(InputPair place, const float* scaled);
  /// The factor of term `index` (from 0), cos((index + 2) π x).
  static double cosine_factor(int index);

  /// Finds what is seen of a query's documents, [docs × seen()].
  void see(FeatureMatrix docs, std::vector<float>& scaled) const;
  /// The feature rows [docs × columns()] of what was seen, less `means`: [centred()], or those of wider
  /// features, which begin and end with these.
  void expand(std::span<const float> scaled, std::span<const float> means, std::span<double> rows) const;
  /// Finds the means of the centred features, too.
  void expand_centred(std::span<const float> scaled, std::span<float> means, std::span<double> rows) const;

 private:
  double start_score(const float* scaled) const;

  std::int64_t inputs_;
  ClickInputs used_;
  std::shared_ptr<const ClickStart> start_;
  std::shared_ptr<const ProductPlaces> products_;
};

/// A query's inputs scaled to [0, 1] feature by feature; those that do not differ become 0.
void scale_within_query(FeatureMatrix docs, std::vector<float>& scaled);

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
