#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>

#include "core/io/state_archive.h"
#include "recommend/factors/factor_matrix.h"
#include "recommend/mter/mter_parameters.h"
#include "recommend/ranking_figures.h"
#include "recommend/recommender.h"

namespace olrank {
namespace {

constexpr std::size_t kEfmReasons = 3;

/// All parameters. A row of `users` is (U₁, H₁), one of `items` (V₁, H₂).
struct EfmParameters {
  std::int64_t explicit_columns = 0;
  FactorMatrix users;
  FactorMatrix items;
  FactorMatrix features;  // Z

  void fields(StateFields& state) {
    users.fields(state, "users", false);
    items.fields(state, "items", false);
    features.fields(state, "features", false);
  }
};

class EfmRecommender : public Recommender {
 public:
  EfmRecommender(std::shared_ptr<const EfmParameters> parameters, std::int64_t matched, double share,
                 double highest_rating)
      : parameters_(std::move(parameters)),
        matched_(matched),
        share_(share),
        highest_rating_(highest_rating) {}

  void score(std::int64_t user, std::span<float> scores) const override {
    // Σ_k X̂_ik Ŷ_jk = V₁_j · Σ_k X̂_ik Z_k: one vector for all items.
    const EfmParameters& p = *parameters_;
    AlignedVector<float> direction(p.users.width, 0.0F);
    const float* const own = p.users.row(user);
    for (std::int64_t i = 0; i < p.users.columns; ++i)
      direction[i] = static_cast<float>((1.0 - share_) * own[i]);
    const std::vector<std::pair<double, std::int32_t>> attention = most_attended(user);
    const double scale =
        share_ / (std::max<double>(static_cast<double>(attention.size()), 1.0) * highest_rating_);
    for (const auto& [attended, feature] : attention) {
      for (std::int64_t i = 0; i < p.explicit_columns; ++i)
        direction[i] += static_cast<float>(scale * attended * p.features.row(feature)[i]);
    }
    score_rows(direction.data(), p.items, scores);
  }

  std::optional<Explanation> explain(std::int64_t user, std::int64_t item,
                                     const ReviewNames& names) const override {
    Explanation explanation;
    explanation.details = {{"scale", highest_rating_}, {"features", nlohmann::ordered_json::array()}};
    struct Reason {
      double attention;
      double quality;
      std::int32_t feature;
    };
    std::vector<Reason> reasons;
    for (const auto& [attention, feature] : most_attended(user))
      reasons.push_back({attention, explicit_product(parameters_->items.row(item), feature), feature});
    std::stable_sort(reasons.begin(), reasons.end(), [](const Reason& a, const Reason& b) {
      return a.attention * a.quality > b.attention * b.quality;
    });
    reasons.resize(std::min(reasons.size(), kEfmReasons));
    for (const Reason& reason : reasons) {
      const std::string name(names.features[reason.feature]);
      explanation.details["features"].push_back(
          {{"feature", name}, {"attention", reason.attention}, {"sentiment", reason.quality}});
      explanation.sentences.push_back(fmt::format(
          "You care about {} ({:.1f} of {:g}), on which {} does well ({:.1f} of {:g}).", name,
          reason.attention, highest_rating_, names.items[item], reason.quality, highest_rating_));
    }
    return explanation;
  }

  void save(StateWriter& state) const override {
    const EfmParameters& p = *parameters_;
    state.put("efm.shape", std::vector<std::int64_t>{p.explicit_columns, p.users.columns, matched_});
    state.put("efm.numbers", std::vector<double>{share_, highest_rating_});
    save_fields(p, state);
  }

 private:
  double explicit_product(const float* row, std::int32_t feature) const {
    double sum = 0.0;
    for (std::int64_t i = 0; i < parameters_->explicit_columns; ++i)
      sum += double{row[i]} * double{parameters_->features.row(feature)[i]};
    return sum;
  }

  /// The features of the highest X̂_ik.
  std::vector<std::pair<double, std::int32_t>> most_attended(std::int64_t user) const {
    std::vector<double> all;
    all.reserve(static_cast<std::size_t>(parameters_->features.rows));
    for (std::int32_t feature = 0; feature < parameters_->features.rows; ++feature)
      all.push_back(explicit_product(parameters_->users.row(user), feature));
    std::vector<std::pair<double, std::int32_t>> attention;
    for (const std::int32_t feature : largest_places(all, matched_))
      attention.emplace_back(all[feature], feature);
    return attention;
  }

  std::shared_ptr<const EfmParameters> parameters_;
  std::int64_t matched_;
  double share_;
  double highest_rating_;
};

/// Values of what is mentioned: `row_of` gives the row of a review, value(uses, sentiments) the entry.
template <class Value>
RatingRows mentioned(const TrainingData& data, const std::vector<std::int32_t>& row_of, std::int64_t rows,
                     Value value) {
  std::vector<PlacedRating> placed;
  for (const MentionCount& count : count_mentions(data, row_of)) {
    placed.push_back({count.row, count.feature,
                      static_cast<float>(value(static_cast<double>(count.positive + count.negative),
                                               static_cast<double>(count.positive - count.negative)))});
  }
  return sparse_rows(placed, rows);
}

/// Explicit factor models: Zhang, Lai, Zhang, Zhang, Liu, Ma, "Explicit factor models for explainable
/// recommendation based on phrase-level sentiment analysis", SIGIR 2014. Ratings A ≈ U₁V₁ᵀ + H₁H₂ᵀ, users'
/// attention X ≈ U₁Zᵀ and items' quality Y ≈ V₁Zᵀ, all non-negative, over observed entries.
/// Deviation: rows are solved one by one given the others, where the paper has multiplicative updates.
class EfmTraining : public RecommenderTraining {
 public:
  EfmTraining(const RecommendSettings& settings, const TrainingData& data)
      : RecommenderTraining(settings.passes),
        settings_(settings),
        data_(data),
        counts_(counts_of(*data.reviews)),
        parameters_(std::make_shared<EfmParameters>()),
        model_(parameters_, settings.factors.matched_features, settings.factors.feature_share,
               data.reviews->highest_rating) {
    const double highest = data.reviews->highest_rating;
    // X and Y of the paper's Eqs. (1) and (2): attention grows with uses, quality is of all sentiments.
    attention_ = mentioned(data, data.reviews->user, counts_.users,
                           [&](double uses, double) { return phrase_value(uses, highest); });
    quality_ = mentioned(data, data.reviews->item, counts_.items,
                         [&](double, double sentiments) { return preference_value(sentiments, highest); });
    attention_by_feature_ = transposed_rows(attention_, counts_.features);
    quality_by_feature_ = transposed_rows(quality_, counts_.features);
    EfmParameters& p = *parameters_;
    p.explicit_columns = settings.factors.dimension;
    const std::int64_t columns = p.explicit_columns + settings.factors.hidden_dimension;
    p.users = FactorMatrix(counts_.users, columns);
    p.items = FactorMatrix(counts_.items, columns);
    p.features = FactorMatrix(counts_.features, p.explicit_columns);
    const double scale = 2.0 * std::sqrt((1.0 + highest) / 2.0 / static_cast<double>(columns));
    std::uint64_t member = 0;
    for (FactorMatrix* matrix : {&p.users, &p.items, &p.features})
      matrix->fill_uniform(static_cast<std::uint64_t>(settings.seed), member++, scale);
  }

  const Recommender& model() const override { return model_; }

  TrainingPassReport advance(ExecutionContext& context) override {
    EfmParameters& p = *parameters_;
    const FactorSettings& f = settings_.factors;
    const std::int64_t whole = p.users.columns;
    fit_rows(context, p.users, f.penalty,
             {{&data_.by_user, &p.items, whole, 1.0},
              {&attention_, &p.features, p.explicit_columns, f.user_feature_weight}});
    fit_rows(context, p.items, f.penalty,
             {{&data_.by_item, &p.users, whole, 1.0},
              {&quality_, &p.features, p.explicit_columns, f.item_feature_weight}});
    fit_rows(context, p.features, f.penalty,
             {{&attention_by_feature_, &p.users, p.explicit_columns, f.user_feature_weight},
              {&quality_by_feature_, &p.items, p.explicit_columns, f.item_feature_weight}});
    return {.pass = ++passed_,
            .losses = losses(),
            .entries = 2 * (std::ssize(data_.by_user.others) + std::ssize(attention_.others) +
                            std::ssize(quality_.others))};
  }

  void fields(StateFields& state) override {
    state.numbers("efm.passed", passed_);
    parameters_->fields(state);
  }

 private:
  static double squared_errors(const RatingRows& rows, const FactorMatrix& a, const FactorMatrix& b,
                               std::int64_t columns) {
    double sum = 0.0;
    for (std::int64_t row = 0; row < rows.rows(); ++row) {
      for (std::int64_t i = 0; i < rows.count(row); ++i) {
        double product = 0.0;
        const float* const other = b.row(rows.others_of(row)[i]);
        for (std::int64_t c = 0; c < columns; ++c) product += double{a.row(row)[c]} * double{other[c]};
        sum += (product - rows.ratings_of(row)[i]) * (product - rows.ratings_of(row)[i]);
      }
    }
    return sum;
  }

  std::vector<std::pair<std::string, double>> losses() const {
    const EfmParameters& p = *parameters_;
    const double ratings = squared_errors(data_.by_user, p.users, p.items, p.users.columns);
    const double attention = squared_errors(attention_, p.users, p.features, p.explicit_columns);
    const double quality = squared_errors(quality_, p.items, p.features, p.explicit_columns);
    double penalty = 0.0;
    for (const FactorMatrix* matrix : {&p.users, &p.items, &p.features}) {
      for (const float value : matrix->values) penalty += double{value} * double{value};
    }
    penalty *= settings_.factors.penalty;
    return {{"loss", ratings + settings_.factors.user_feature_weight * attention +
                         settings_.factors.item_feature_weight * quality + penalty},
            {"ratings", ratings},
            {"attention", attention},
            {"quality", quality},
            {"penalty", penalty}};
  }

  RecommendSettings settings_;
  const TrainingData& data_;
  ReviewCounts counts_;
  RatingRows attention_;
  RatingRows quality_;
  RatingRows attention_by_feature_;
  RatingRows quality_by_feature_;
  std::shared_ptr<EfmParameters> parameters_;
  EfmRecommender model_;
};

std::int64_t plan_efm(const RecommendSettings& settings, const ReviewCounts& counts, int threads) {
  const std::int64_t columns = settings.factors.dimension + settings.factors.hidden_dimension;
  const std::int64_t factors = (counts.users + counts.items + counts.features) * padded_width(columns);
  return factors * 2 * static_cast<std::int64_t>(sizeof(float)) + counts.mentions * 60 +
         threads * columns * columns * static_cast<std::int64_t>(sizeof(double));
}

std::unique_ptr<Recommender> read_efm(StateReader& state, const ReviewCounts& counts) {
  std::array<std::int64_t, 3> shape{};
  state.get_into("efm.shape", std::span<std::int64_t>(shape));
  std::array<double, 2> numbers{};
  state.get_into("efm.numbers", std::span<double>(numbers));
  if (shape[0] < 1 || shape[1] < shape[0] || shape[1] > 2048 || shape[2] < 1)
    state.fail("The model's shape is damaged.");
  auto parameters = std::make_shared<EfmParameters>();
  parameters->explicit_columns = shape[0];
  parameters->users = FactorMatrix(counts.users, shape[1]);
  parameters->items = FactorMatrix(counts.items, shape[1]);
  parameters->features = FactorMatrix(counts.features, shape[0]);
  load_fields(*parameters, state);
  return std::make_unique<EfmRecommender>(std::move(parameters), shape[2], numbers[0], numbers[1]);
}

constexpr std::array<std::string_view, 7> kEfmKeys = {
    "dimension",        "penalty",          "user_feature_weight", "item_feature_weight",
    "hidden_dimension", "matched_features", "feature_share"};

}  // namespace

constinit const RecommenderKindRow kEfmKind = {
    RecommenderKind::kEfm,
    "explicit factors: ratings, users' attention and items' quality",
    30,
    kEfmKeys,
    true,
    nullptr,
    plan_efm,
    start_training<EfmTraining>,
    read_efm};

}  // namespace olrank
