#include "recommend/trees/fact_training.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/state_archive.h"
#include "core/math/any_cpu.h"
#include "core/math/pair_loss.h"
#include "core/random/rng_stream.h"
#include "recommend/recommender.h"
#include "recommend/trees/pair_source.h"
#include "recommend/trees/tree_growth.h"
#include "recommend/trees/tree_model.h"

namespace olrank {
namespace {

Profiles profiles_of_training(const TrainingData& data, ProfileKind kind) {
  const Reviews& reviews = *data.reviews;
  const bool of_users = kind == ProfileKind::kUser;
  return make_profiles(of_users ? reviews.names.users.size() : reviews.names.items.size(),
                       reviews.names.features.size(),
                       count_mentions(data, of_users ? reviews.user : reviews.item), kind);
}

struct TrainedSide {
  explicit TrainedSide(Profiles of_rows)
      : profiles(std::move(of_rows)), thresholds(equal_frequency_thresholds(profiles)) {
    split.profiles = &profiles;
    split.thresholds = &thresholds;
    split.reached = reached_thresholds(profiles, thresholds);
  }
  TrainedSide(const TrainedSide&) = delete;
  TrainedSide& operator=(const TrainedSide&) = delete;

  Profiles profiles;
  Thresholds thresholds;
  SplitData split;
};

double squared_loss(const RatingRows& by_user, const FactorRows& users, const FactorRows& items) {
  double sum = 0.0;
  for (std::int64_t user = 0; user < by_user.rows(); ++user) {
    const auto rated = by_user.others_of(user);
    const auto ratings = by_user.ratings_of(user);
    for (std::size_t place = 0; place < rated.size(); ++place)
      sum += squared_distance(factor_product(users.row(user), items.row(rated[place])), ratings[place]);
  }
  return sum;
}

double pair_loss(std::span<const ItemPair> pairs, const FactorRows& users, const FactorRows& items) {
  double sum = 0.0;
  for (const ItemPair& pair : pairs) {
    sum += logistic_loss_of(factor_product(users.row(pair.user), items.row(pair.winner)) -
                            factor_product(users.row(pair.user), items.row(pair.loser)));
  }
  return sum;
}

/// FacT: two trees over what reviews mention, alternated. Jia, Toward Reliable Decision-making in
/// Information Systems, PhD thesis, UVA 2022, §4.2.
class FactTraining : public RecommenderTraining {
 public:
  FactTraining(const RecommendSettings& settings, const TrainingData& data)
      : RecommenderTraining(settings.passes),
        settings_(settings),
        data_(data),
        users_(profiles_of_training(data, ProfileKind::kUser)),
        items_(profiles_of_training(data, ProfileKind::kItem)),
        next_items_(data.by_item.rows(), dimension()),
        model_(untrained()) {}

  bool finished() const override { return settled_ || passed_ >= passes(); }
  const Recommender& model() const override { return model_; }

  TrainingPassReport advance(ExecutionContext& context) override;

  nlohmann::ordered_json facts() const override {
    const TreeModel& trees = model_.trees();
    return {{"user_tree", {{"depth", trees.user_tree.depth()}, {"nodes", trees.user_tree.size()}}},
            {"item_tree", {{"depth", trees.item_tree.depth()}, {"nodes", trees.item_tree.size()}}},
            {"settled", settled_}};
  }

  void fields(StateFields& state) override {
    state.numbers("fact.passed", passed_);
    state.numbers("fact.loss", loss_);
    state.number("fact.settled", std::int64_t{settled_}, [this](std::int64_t one) { settled_ = one != 0; });
    state.sized("fact.start", next_items_.padded_values());
    if (!state.reads()) return model_.save(state.writer());
    model_.replace(read_tree_model(state.reader(), TreeQuestions::kFeatures, data_.by_user.rows(),
                                   data_.by_item.rows(), users_.profiles.features));
  }

 private:
  int dimension() const { return static_cast<int>(settings_.factors.dimension); }

  /// V_0.
  FactorRows first_items() const {
    return factorise_ratings(data_.by_user, data_.by_item.rows(),
                             {.dimension = dimension(),
                              .passes = settings_.trees.start_passes,
                              .pair_weight = settings_.trees.tree_pair_weight,
                              .seed = static_cast<std::uint64_t>(settings_.seed)});
  }

  TreeModel untrained() const {
    TreeModel model;
    model.user_tree = FactorTree(dimension());
    model.item_tree = FactorTree(dimension());
    model.users = FactorRows(data_.by_user.rows(), dimension());
    model.items = FactorRows(data_.by_item.rows(), dimension());
    model.user_leaf.assign(data_.by_user.rows(), 0);
    model.item_leaf.assign(data_.by_item.rows(), 0);
    model.user_profiles = users_.profiles;
    model.item_profiles = items_.profiles;
    return model;
  }

  DescentSettings descent() const {
    return {.pair_weight = settings_.trees.tree_pair_weight,
            .steps = static_cast<int>(settings_.trees.descent_steps),
            .step_size = settings_.trees.descent_step_size};
  }
  GrowthSettings growth(std::int64_t depth, double penalty) const {
    return {.depth = static_cast<int>(depth),
            .least_rows = settings_.trees.node_rows,
            .penalty = penalty,
            .parent_factor = settings_.trees.parent_factor,
            .finalists = settings_.trees.finalists,
            .descent = descent()};
  }

  static std::vector<std::int32_t> rows_with_data(const RatingRows& ratings, const PairSource& pairs) {
    std::vector<std::int32_t> rows;
    for (std::int64_t row = 0; row < ratings.rows(); ++row) {
      if (ratings.count(row) > 0 || pairs.concerns(row)) rows.push_back(static_cast<std::int32_t>(row));
    }
    return rows;
  }

  const RecommendSettings settings_;
  const TrainingData& data_;
  TrainedSide users_;
  TrainedSide items_;
  FactorRows next_items_;  // V_{t−1}
  TreeRecommender model_;
  double loss_ = 0.0;
  bool settled_ = false;
};

TrainingPassReport FactTraining::advance(ExecutionContext& context) {
  const TreeSettings& trees = settings_.trees;
  const std::int64_t pass = passed_ + 1;
  if (pass == 1) next_items_ = first_items();
  const std::vector<ItemPair> pairs =
      trees.tree_pair_weight > 0.0
          ? sample_preference_pairs(data_.by_user, data_.by_item.rows(), trees.pairs_per_rating,
                                    static_cast<std::uint64_t>(settings_.seed), pass)
          : std::vector<ItemPair>{};
  const bool personal_now = trees.personal == PersonalTerms::kEvery;
  TreeModel model = model_.trees();

  const UserPairs user_pairs(pairs, data_.by_user.rows(), next_items_);
  const std::vector<std::int32_t> user_rows = rows_with_data(data_.by_user, user_pairs);
  users_.split.dimension = dimension();
  users_.split.sums = squared_sums_of_rows(data_.by_user, next_items_);
  GrownTree of_users = grow_tree(context, users_.split, user_rows, &user_pairs,
                                 growth(trees.user_depth, trees.user_penalty));
  double penalty = of_users.penalty;
  if (personal_now) {
    penalty += add_user_terms(context, users_.split, user_rows, &user_pairs, trees.user_penalty, descent(),
                              of_users.factors);
  }
  users_.split.sums = {};
  model.user_tree = std::move(of_users.tree);
  model.user_leaf = std::move(of_users.leaf_of);
  model.users = std::move(of_users.factors);

  const ItemPairs item_pairs(pairs, data_.by_item.rows(), model.users);
  const std::vector<std::int32_t> item_rows = rows_with_data(data_.by_item, item_pairs);
  items_.split.dimension = dimension();
  items_.split.sums = squared_sums_of_rows(data_.by_item, model.users);
  GrownTree of_items = grow_tree(context, items_.split, item_rows, &item_pairs,
                                 growth(trees.item_depth, trees.item_penalty));
  penalty += of_items.penalty;
  if (personal_now) {
    penalty += add_item_terms(items_.split, item_rows, &item_pairs, trees.item_penalty, descent(),
                              of_items.factors);
  }
  model.item_tree = std::move(of_items.tree);
  model.item_leaf = std::move(of_items.leaf_of);
  model.items = std::move(of_items.factors);
  next_items_ = model.items;

  const auto whole_loss = [&] {
    return squared_loss(data_.by_user, model.users, model.items) +
           trees.tree_pair_weight * pair_loss(pairs, model.users, model.items) + penalty;
  };
  const double loss = whole_loss();
  settled_ = pass > 1 && std::fabs(loss_ - loss) < trees.least_change * std::fabs(loss_);
  loss_ = loss;
  passed_ = pass;
  if (!personal_now && finished()) {
    const UserPairs last_pairs(pairs, data_.by_user.rows(), model.items);
    users_.split.sums = squared_sums_of_rows(data_.by_user, model.items);
    penalty += add_user_terms(context, users_.split, user_rows, &last_pairs, trees.user_penalty, descent(),
                              model.users);
    users_.split.sums = {};
    items_.split.sums = squared_sums_of_rows(data_.by_item, model.users);
    penalty +=
        add_item_terms(items_.split, item_rows, &item_pairs, trees.item_penalty, descent(), model.items);
    loss_ = whole_loss();
  }
  items_.split.sums = {};
  TrainingPassReport report{.pass = pass};
  const double squared = squared_loss(data_.by_user, model.users, model.items);
  report.losses = {
      {"loss", loss_}, {"squared", squared}, {"pairs", loss_ - squared - penalty}, {"penalty", penalty}};
  report.pairs = std::ssize(pairs);
  model_.replace(std::move(model));
  return report;
}

/// Factors with their sums of squared gradients.
struct LearnedFactors {
  LearnedFactors(std::int64_t rows, int dimension) : values(rows, dimension), squares(rows, dimension) {}

  void step(std::int64_t row, std::span<const double> gradient, double step_size) {
    const std::span<float> value = values.row(row);
    const std::span<float> square = squares.row(row);
    for (std::size_t k = 0; k < value.size(); ++k) {
      square[k] += static_cast<float>(gradient[k] * gradient[k]);
      if (square[k] > 0.0F)
        value[k] -= static_cast<float>(step_size * gradient[k] / std::sqrt(static_cast<double>(square[k])));
    }
  }

  FactorRows values;
  FactorRows squares;
};

/// Factors whose products are about the mean rating.
void draw_start(FactorRows& factors, double scale, std::uint64_t seed, std::uint64_t side) {
  const PhiloxKey key = make_key({.seed = seed, .purpose = Purpose::kInitialisation, .member = side});
  for (std::int64_t row = 0; row < factors.rows(); ++row) {
    RngStream draws(key, 0, static_cast<std::uint32_t>(row));
    for (float& value : factors.row(row)) value = static_cast<float>(scale * (1.0 + 0.3 * draws.normal()));
  }
}

std::int64_t plan_fact(const RecommendSettings& settings, const ReviewCounts& counts, int threads) {
  constexpr std::int64_t kDouble = sizeof(double);
  const int dimension = static_cast<int>(settings.factors.dimension);
  const std::int64_t sums = squared_sums_size(dimension) * kDouble;
  const std::int64_t row = FactorRows::padded(dimension) * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t pairs = counts.reviews * settings.trees.pairs_per_rating;
  const std::int64_t entries =
      std::min(counts.mentions, std::max(counts.users, counts.items) * counts.features);
  // Sums of the larger side, and per thread those between thresholds; factors of both sides in the old and
  // the new model and at the start; pairs with their index and gathered vectors; mentions while they are
  // counted, then profiles of both sides with copies in the model.
  return std::max(counts.users, counts.items) * sums + threads * (kMostThresholds + 8) * sums +
         4 * (counts.users + counts.items) * row + pairs * (2 * row + 80) + counts.mentions * 32 +
         entries * 64;
}

std::unique_ptr<RecommenderTraining> start_fact(const RecommendSettings& settings,
                                                const TrainingData& data) {
  check_tree_depth("user_depth", settings.trees.user_depth, data.by_user, "users");
  check_tree_depth("item_depth", settings.trees.item_depth, data.by_item, "items");
  return std::make_unique<FactTraining>(settings, data);
}

std::unique_ptr<Recommender> read_fact(StateReader& state, const ReviewCounts& counts) {
  return std::make_unique<TreeRecommender>(
      read_tree_model(state, TreeQuestions::kFeatures, counts.users, counts.items, counts.features));
}

constexpr std::array<std::string_view, 10> kFactKeys = {
    "dimension", "user_depth",   "item_depth",   "node_rows",        "parent_factor",
    "personal",  "user_penalty", "item_penalty", "tree_pair_weight", "least_change"};

}  // namespace

constinit const RecommenderKindRow kFactKind = {
    RecommenderKind::kFact,
    "two trees over what reviews mention, with factors in their leaves",
    10,
    kFactKeys,
    true,
    nullptr,
    plan_fact,
    start_fact,
    read_fact};

FactorRows factorise_ratings(const RatingRows& by_user, std::int64_t items,
                             const MatrixStartSettings& settings) {
  const std::int64_t users = by_user.rows();
  LearnedFactors u(users, settings.dimension);
  LearnedFactors v(items, settings.dimension);
  double mean = 0.0;
  for (const float rating : by_user.ratings) mean += rating;
  if (!by_user.ratings.empty()) mean /= static_cast<double>(by_user.ratings.size());
  const double scale = std::sqrt(mean / settings.dimension);
  draw_start(u.values, scale, settings.seed, 1);
  draw_start(v.values, scale, settings.seed, 2);
  std::vector<double> of_user(settings.dimension);
  std::vector<double> of_winner(settings.dimension);
  std::vector<double> of_loser(settings.dimension);
  for (std::int64_t pass = 0; pass < settings.passes; ++pass) {
    // The passes of trees are numbered from 1, these below 0.
    const std::vector<ItemPair> pairs =
        sample_preference_pairs(by_user, items, 1, settings.seed, -1 - pass);
    for (const ItemPair& pair : pairs) {
      const std::span<const float> user = u.values.row(pair.user);
      const std::span<const float> winner = v.values.row(pair.winner);
      const std::span<const float> loser = v.values.row(pair.loser);
      const double predicted = factor_product(user, winner);
      const auto rated = by_user.others_of(pair.user);
      const auto place = std::lower_bound(rated.begin(), rated.end(), pair.winner) - rated.begin();
      const double error = 2.0 * (predicted - by_user.ratings_of(pair.user)[place]);
      const double z = predicted - factor_product(user, loser);
      const double pull = -settings.pair_weight * sigmoid(-z);
      for (int k = 0; k < settings.dimension; ++k) {
        of_user[k] = error * winner[k] + pull * (static_cast<double>(winner[k]) - loser[k]) +
                     2.0 * settings.penalty * user[k];
        of_winner[k] = (error + pull) * user[k] + 2.0 * settings.penalty * winner[k];
        of_loser[k] = -pull * user[k];
      }
      u.step(pair.user, of_user, settings.step_size);
      v.step(pair.winner, of_winner, settings.step_size);
      v.step(pair.loser, of_loser, settings.step_size);
    }
  }
  return v.values;
}

}  // namespace olrank
