#include "recommend/factors/nmf.h"

#include <cmath>
#include <vector>

#include "core/io/state_archive.h"
#include "core/random/rng_stream.h"
#include "recommend/factors/bprmf.h"
#include "recommend/factors/nonnegative_row.h"

namespace olrank {
namespace {

constexpr std::int64_t kNmfRowsOfBlock = 32;

class NmfTraining : public RecommenderTraining {
 public:
  NmfTraining(const RecommendSettings& settings, const TrainingData& data)
      : settings_(settings),
        data_(data),
        users_(std::make_shared<FactorMatrix>(data.by_user.rows(), settings.factors.dimension)),
        items_(std::make_shared<FactorMatrix>(data.by_item.rows(), settings.factors.dimension)),
        model_(users_, items_) {
    // E[u · v] is the middle of the scale.
    const double middle = (1.0 + data.reviews->highest_rating) / 2.0;
    const double scale = 2.0 * std::sqrt(middle / static_cast<double>(settings.factors.dimension));
    const auto seed = static_cast<std::uint64_t>(settings.seed);
    users_->fill_uniform(make_key({.seed = seed, .purpose = Purpose::kInitialisation, .member = 0}), scale);
    items_->fill_uniform(make_key({.seed = seed, .purpose = Purpose::kInitialisation, .member = 1}), scale);
  }

  std::int64_t passes() const override { return settings_.passes; }
  std::int64_t passed() const override { return passed_; }
  const Recommender& model() const override { return model_; }

  TrainingPassReport advance(ExecutionContext& context) override {
    sweep(context, data_.by_user, *items_, *users_);
    sweep(context, data_.by_item, *users_, *items_);
    TrainingPassReport report;
    report.pass = ++passed_;
    report.entries = 2 * std::ssize(data_.by_user.others);
    report.losses = losses();
    return report;
  }

  void save(StateWriter& state) const override {
    state.put("nmf.passed", passed_);
    users_->save(state, "users", false);
    items_->save(state, "items", false);
  }
  void load(StateReader& state) override {
    passed_ = state.get_one<std::int64_t>("nmf.passed");
    users_->load(state, "users", false);
    items_->load(state, "items", false);
  }

 private:
  void sweep(ExecutionContext& context, const RatingRows& ratings, const FactorMatrix& given,
             FactorMatrix& fitted) const {
    const auto columns = static_cast<std::size_t>(fitted.columns);
    context.for_blocks(fitted.rows, kNmfRowsOfBlock, [&](std::int64_t begin, std::int64_t end, int) {
      NonnegativeRow row(fitted.columns);
      for (std::int64_t number = begin; number < end; ++number) {
        row.clear();
        const auto others = ratings.others_of(number);
        for (std::size_t i = 0; i < others.size(); ++i)
          row.add({given.row(others[i]), columns}, ratings.ratings_of(number)[i], 1.0);
        row.solve(settings_.factors.penalty, {fitted.row(number), columns});
      }
    });
  }

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
  std::int64_t passed_ = 0;
};

}  // namespace

const std::array<std::string_view, 2> kNmfKeys = {"dimension", "penalty"};

std::int64_t plan_nmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads) {
  const std::int64_t width = padded_width(settings.factors.dimension);
  const std::int64_t square = settings.factors.dimension * settings.factors.dimension;
  return (counts.users + counts.items) * width * 2 * static_cast<std::int64_t>(sizeof(float)) +
         threads * square * static_cast<std::int64_t>(sizeof(double));
}

std::unique_ptr<RecommenderTraining> start_nmf(const RecommendSettings& settings,
                                               const TrainingData& data) {
  return std::make_unique<NmfTraining>(settings, data);
}

}  // namespace olrank
