#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "core/io/state_archive.h"
#include "core/random/rng_stream.h"
#include "recommend/factors/factor_matrix.h"
#include "recommend/mter/mter_kernels.h"
#include "recommend/recommender.h"

namespace olrank {
namespace {

constexpr std::int64_t kPairsOfReview = 4;  // that a pass draws for each review
constexpr std::int64_t kBprmfRowsOfBlock = 64;
constexpr double kBprmfStart = 0.1;
constexpr std::string_view kUsers = "users";
constexpr std::string_view kItems = "items";

/// Scores are u_i · v_j. Also what nmf has.
class ProductRecommender : public Recommender {
 public:
  /// The matrices may change between calls.
  ProductRecommender(std::shared_ptr<const FactorMatrix> users, std::shared_ptr<const FactorMatrix> items)
      : users_(std::move(users)), items_(std::move(items)) {}

  void score(std::int64_t user, std::span<float> scores) const override {
    score_rows(users_->row(user), *items_, scores);
  }
  void save(StateWriter& state) const override {
    state.put("product.columns", users_->columns);
    save_fields(*users_, state, kUsers, false);
    save_fields(*items_, state, kItems, false);
  }

 private:
  std::shared_ptr<const FactorMatrix> users_;
  std::shared_ptr<const FactorMatrix> items_;
};

/// Matrix factorisation for pairs: Rendle, Freudenthaler, Gantner, Schmidt-Thieme, "BPR: Bayesian
/// personalized ranking from implicit feedback", UAI 2009, over the pairs of Jia, PhD thesis, UVA 2022, Eq.
/// (4.1.4), with a bias of each item. Mini-batches with AdaGrad, as MTER's.
class BprmfTraining : public RecommenderTraining {
 public:
  BprmfTraining(const RecommendSettings& settings, const TrainingData& data)
      : RecommenderTraining(settings.passes),
        settings_(settings),
        dimension_(settings.factors.dimension),
        draws_(data.by_user, data.by_item.rows()),
        pairs_(draws_,
               make_key({.seed = static_cast<std::uint64_t>(settings.seed), .purpose = Purpose::kBatch}),
               std::min(settings.factors.pairs, kPairsOfReview * draws_.reviews())),
        users_(std::make_shared<FactorMatrix>(data.by_user.rows(), dimension_ + 1)),
        items_(std::make_shared<FactorMatrix>(data.by_item.rows(), dimension_ + 1)),
        model_(users_, items_) {
    const auto seed = static_cast<std::uint64_t>(settings.seed);
    users_->fill_normal(seed, 0, kBprmfStart);
    items_->fill_normal(seed, 1, kBprmfStart);
    // The last column is the item's bias; users have 1 there.
    for (std::int64_t user = 0; user < users_->rows; ++user) users_->row(user)[dimension_] = 1.0F;
    for (std::int64_t item = 0; item < items_->rows; ++item) items_->row(item)[dimension_] = 0.0F;
    pairs_.resize(users_->width, users_->width);
    ones_.assign(users_->width, 1.0F);
  }

  const Recommender& model() const override { return model_; }

  TrainingPassReport advance(ExecutionContext& context) override {
    const std::int64_t iterations =
        std::max<std::int64_t>(blocks_of(kPairsOfReview * draws_.reviews(), pairs_.count()), 1);
    double loss = 0.0;
    for (std::int64_t done = 0; done < iterations; ++done) loss += step(context);
    loss /= static_cast<double>(iterations);
    return {.pass = ++passed_,
            .losses = {{"loss", loss}, {"pairs", loss}},
            .pairs = iterations * pairs_.count()};
  }

  void fields(StateFields& state) override {
    state.numbers("bprmf.passed", passed_);
    state.numbers("bprmf.iteration", iteration_);
    users_->fields(state, kUsers, true);
    items_->fields(state, kItems, true);
  }

 private:
  double step(ExecutionContext& context) {
    context.pool().run(pairs_.blocks(), [&](std::int64_t block, int) { draw_and_slope(block); });
    ++iteration_;
    context.pool().run(3, [&](std::int64_t index, int) {
      if (index == 0) return pairs_.index_users(users_->rows);
      if (index == 1) return pairs_.index_winners(items_->rows);
      pairs_.index_losers(items_->rows);
    });
    const std::int64_t user_blocks = blocks_of(users_->rows, kBprmfRowsOfBlock);
    const std::int64_t item_blocks = blocks_of(items_->rows, kBprmfRowsOfBlock);
    context.pool().run(user_blocks + item_blocks, [&](std::int64_t block, int) {
      const bool of_users = block < user_blocks;
      FactorMatrix& matrix = of_users ? *users_ : *items_;
      const std::int64_t begin = (of_users ? block : block - user_blocks) * kBprmfRowsOfBlock;
      AlignedVector<float> gradient(matrix.width);
      for (std::int64_t row = begin; row < std::min(begin + kBprmfRowsOfBlock, matrix.rows); ++row)
        update(matrix, of_users, row, gradient);
    });
    return pairs_.mean_loss();
  }

  void draw_and_slope(std::int64_t block) {
    pairs_.draw(static_cast<std::uint32_t>(iteration_), block);
    pairs_.differentiate(block, {.users = users_->values.data(),
                                 .items = items_->values.data(),
                                 .contracted = ones_.data(),
                                 .weight = 1.0 / static_cast<double>(pairs_.count())});
  }

  void update(FactorMatrix& matrix, bool of_users, std::int64_t row, AlignedVector<float>& gradient) const {
    const std::int64_t width = matrix.width;
    matrix.start_gradient(row, settings_.factors.factor_penalty, gradient.data());
    if (of_users) {
      pairs_.add_user_gradient(row, gradient.data());
      gradient[dimension_] = 0.0F;
    } else {
      pairs_.add_item_gradient(row, gradient.data());
    }
    adagrad_step(static_cast<float>(settings_.factors.learning_rate), false, gradient.data(),
                 matrix.squares.data() + row * width, matrix.row(row), width);
  }

  RecommendSettings settings_;
  std::int64_t dimension_;
  PairDraws draws_;
  PairBatch pairs_;
  std::shared_ptr<FactorMatrix> users_;
  std::shared_ptr<FactorMatrix> items_;
  ProductRecommender model_;
  AlignedVector<float> ones_;
  std::int64_t iteration_ = 0;
};

/// Non-negative matrix factorisation of the observed ratings by squared error: users, then items, each row
/// given the other side.
class NmfTraining : public RecommenderTraining {
 public:
  NmfTraining(const RecommendSettings& settings, const TrainingData& data)
      : RecommenderTraining(settings.passes),
        settings_(settings),
        data_(data),
        users_(std::make_shared<FactorMatrix>(data.by_user.rows(), settings.factors.dimension)),
        items_(std::make_shared<FactorMatrix>(data.by_item.rows(), settings.factors.dimension)),
        model_(users_, items_) {
    // E[u · v] is the middle of the scale.
    const double middle = (1.0 + data.reviews->highest_rating) / 2.0;
    const double scale = 2.0 * std::sqrt(middle / static_cast<double>(settings.factors.dimension));
    const auto seed = static_cast<std::uint64_t>(settings.seed);
    users_->fill_uniform(seed, 0, scale);
    items_->fill_uniform(seed, 1, scale);
  }

  const Recommender& model() const override { return model_; }

  TrainingPassReport advance(ExecutionContext& context) override {
    const FactorSettings& f = settings_.factors;
    fit_rows(context, *users_, f.penalty, {{&data_.by_user, items_.get(), f.dimension, 1.0}});
    fit_rows(context, *items_, f.penalty, {{&data_.by_item, users_.get(), f.dimension, 1.0}});
    return {.pass = ++passed_, .losses = losses(), .entries = 2 * std::ssize(data_.by_user.others)};
  }

  void fields(StateFields& state) override {
    state.numbers("nmf.passed", passed_);
    users_->fields(state, kUsers, false);
    items_->fields(state, kItems, false);
  }

 private:
  std::vector<std::pair<std::string, double>> losses() const {
    double squares = 0.0;
    double penalty = 0.0;
    for (std::int64_t user = 0; user < users_->rows; ++user) {
      const auto items = data_.by_user.others_of(user);
      for (std::size_t i = 0; i < items.size(); ++i) {
        const double error = double{row_product(users_->row(user), items_->row(items[i]), users_->width)} -
                             data_.by_user.ratings_of(user)[i];
        squares += error * error;
      }
    }
    for (const FactorMatrix* matrix : {users_.get(), items_.get()}) {
      for (const float value : matrix->values) penalty += double{value} * double{value};
    }
    penalty *= settings_.factors.penalty;
    return {{"loss", squares + penalty}, {"ratings", squares}, {"penalty", penalty}};
  }

  RecommendSettings settings_;
  const TrainingData& data_;
  std::shared_ptr<FactorMatrix> users_;
  std::shared_ptr<FactorMatrix> items_;
  ProductRecommender model_;
};

std::unique_ptr<Recommender> read_product(StateReader& state, const ReviewCounts& counts) {
  const auto columns = state.get_one<std::int64_t>("product.columns");
  if (columns < 1 || columns > 1025) state.fail("The model's shape is damaged.");
  auto users = std::make_shared<FactorMatrix>(counts.users, columns);
  auto items = std::make_shared<FactorMatrix>(counts.items, columns);
  load_fields(*users, state, kUsers, false);
  load_fields(*items, state, kItems, false);
  return std::make_unique<ProductRecommender>(std::move(users), std::move(items));
}

void set_bprmf_defaults(RecommendSettings& settings) {
  settings.factors.factor_penalty = 0.1;
}

std::int64_t plan_bprmf(const RecommendSettings& settings, const ReviewCounts& counts, int) {
  const std::int64_t width = padded_width(settings.factors.dimension + 1);
  const std::int64_t factors = 3 * (counts.users + counts.items) * width;
  return (factors + settings.factors.pairs * (2 * width + 9) + counts.reviews) *
         static_cast<std::int64_t>(sizeof(float));
}

std::int64_t plan_nmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads) {
  const std::int64_t width = padded_width(settings.factors.dimension);
  const std::int64_t square = settings.factors.dimension * settings.factors.dimension;
  return (counts.users + counts.items) * width * 2 * static_cast<std::int64_t>(sizeof(float)) +
         threads * square * static_cast<std::int64_t>(sizeof(double));
}

constexpr std::array<std::string_view, 4> kBprmfKeys = {"dimension", "learning_rate", "factor_penalty",
                                                        "pairs"};
constexpr std::array<std::string_view, 2> kNmfKeys = {"dimension", "penalty"};

}  // namespace

constinit const RecommenderKindRow kBprmfKind = {RecommenderKind::kBprmf,
                                                 "matrix factorisation for pairs",
                                                 100,
                                                 kBprmfKeys,
                                                 false,
                                                 set_bprmf_defaults,
                                                 plan_bprmf,
                                                 start_training<BprmfTraining>,
                                                 read_product};
constinit const RecommenderKindRow kNmfKind = {RecommenderKind::kNmf,
                                               "non-negative factorisation of ratings",
                                               30,
                                               kNmfKeys,
                                               false,
                                               nullptr,
                                               plan_nmf,
                                               start_training<NmfTraining>,
                                               read_product};

}  // namespace olrank
