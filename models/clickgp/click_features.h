#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/normaliser.h"
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

}  // namespace olrank
