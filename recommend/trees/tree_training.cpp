#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/state_archive.h"
#include "core/math/any_cpu.h"
#include "core/math/pair_loss.h"
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

/// A user's profile is what the user rated.
Profiles profiles_of_ratings(const RatingRows& by_user, std::int64_t items) {
  Profiles profiles;
  profiles.features = items;
  profiles.begin = by_user.ends;
  for (std::size_t place = 0; place < by_user.others.size(); ++place)
    profiles.entries.push_back({by_user.others[place], by_user.ratings[place]});
  return profiles;
}

/// The rows of one side with what a tree may ask about them.
struct TrainedSide {
  TrainedSide(Profiles of_rows, Thresholds cuts, const RatingRows& rated)
      : profiles(std::move(of_rows)), thresholds(std::move(cuts)), ratings(rated) {
    split.profiles = &profiles;
    split.thresholds = &thresholds;
    split.reached = reached_thresholds(profiles, thresholds);
  }
  TrainedSide(const Profiles& of_rows, const RatingRows& rated)
      : TrainedSide(of_rows, equal_frequency_thresholds(of_rows), rated) {}
  TrainedSide(const TrainedSide&) = delete;
  TrainedSide& operator=(const TrainedSide&) = delete;

  Profiles profiles;
  Thresholds thresholds;
  const RatingRows& ratings;
  SplitData split;
  std::vector<std::int32_t> rows;  // with data, in this pass
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

/// Both trainings have a model of trees, whose loss settles.
class TreeTraining : public RecommenderTraining {
 public:
  bool finished() const override { return settled_ || passed_ >= passes(); }
  const Recommender& model() const override { return model_; }

  void fields(StateFields& state) override {
    const auto own = [this](const char* name) {
      return fmt::format("{}.{}", name_of(settings_.kind), name);
    };
    state.numbers(own("passed"), passed_);
    state.numbers(own("loss"), loss_);
    state.number(own("settled"), std::int64_t{settled_}, [this](std::int64_t one) { settled_ = one != 0; });
    own_fields(state);
    if (!state.reads()) return model_.save(state.writer());
    const TreeModel& trees = model_.trees();
    model_.replace(read_tree_model(state.reader(), trees.questions, data_.by_user.rows(),
                                   data_.by_item.rows(), trees.user_profiles.features));
  }

 protected:
  TreeTraining(const RecommendSettings& settings, const TrainingData& data, TreeQuestions questions,
               TreeModel model = {})
      : RecommenderTraining(settings.passes),
        settings_(settings),
        data_(data),
        model_(untrained(questions, std::move(model))) {}

  virtual void own_fields(StateFields&) {}

  int dimension() const { return static_cast<int>(settings_.factors.dimension); }

  /// V_0.
  FactorRows first_items(double pair_weight) const {
    return factorise_ratings(data_.by_user, data_.by_item.rows(),
                             {.dimension = dimension(),
                              .passes = settings_.trees.start_passes,
                              .pair_weight = pair_weight,
                              .seed = static_cast<std::uint64_t>(settings_.seed)});
  }

  DescentSettings descent() const {
    return {.pair_weight = settings_.trees.tree_pair_weight,
            .steps = static_cast<int>(settings_.trees.descent_steps),
            .step_size = settings_.trees.descent_step_size};
  }

  /// Grows the tree of a side given the factors of the other side. `pairs` may be null.
  GrownTree grow(ExecutionContext& context, TrainedSide& side, const FactorRows& others,
                 const PairSource* pairs, std::int64_t depth, double penalty) const {
    side.rows.clear();
    for (std::int32_t row = 0; row < side.ratings.rows(); ++row) {
      if (side.ratings.count(row) > 0 || (pairs != nullptr && pairs->concerns(row)))
        side.rows.push_back(row);
    }
    side.split.dimension = dimension();
    side.split.sums = squared_sums_of_rows(side.ratings, others);
    return grow_tree(context, side.split, side.rows, pairs,
                     {.depth = static_cast<int>(depth),
                      .least_rows = settings_.trees.node_rows,
                      .penalty = penalty,
                      .parent_factor = settings_.trees.parent_factor,
                      .finalists = settings_.trees.finalists,
                      .descent = descent()});
  }

  /// Ends a pass with this loss.
  void end_pass(double loss) {
    const double most = settings_.trees.least_change * std::fabs(loss_);
    settled_ = ++passed_ > 1 && std::fabs(loss_ - loss) < most;
    loss_ = loss;
  }

  const RecommendSettings settings_;
  const TrainingData& data_;
  TreeRecommender model_;
  double loss_ = 0.0;
  bool settled_ = false;

 private:
  TreeModel untrained(TreeQuestions questions, TreeModel model) const {
    model.questions = questions;
    model.user_tree = FactorTree(dimension());
    model.users = FactorRows(data_.by_user.rows(), dimension());
    model.items = FactorRows(data_.by_item.rows(), dimension());
    model.user_leaf.assign(data_.by_user.rows(), 0);
    return model;
  }
};

/// FacT: two trees over what reviews mention, alternated. Jia, Toward Reliable Decision-making in
/// Information Systems, PhD thesis, UVA 2022, §4.2.
class FactTraining : public TreeTraining {
 public:
  FactTraining(const RecommendSettings& settings, const TrainingData& data)
      : TreeTraining(settings, data, TreeQuestions::kFeatures, of_items_and_mentions(settings, data)),
        users_(model_.trees().user_profiles, data.by_user),
        items_(model_.trees().item_profiles, data.by_item),
        next_items_(data.by_item.rows(), dimension()) {}

  TrainingPassReport advance(ExecutionContext& context) override;

  nlohmann::ordered_json facts() const override {
    const TreeModel& trees = model_.trees();
    return {{"user_tree", {{"depth", trees.user_tree.depth()}, {"nodes", trees.user_tree.size()}}},
            {"item_tree", {{"depth", trees.item_tree.depth()}, {"nodes", trees.item_tree.size()}}},
            {"settled", settled_}};
  }

 private:
  void own_fields(StateFields& state) override { state.sized("fact.start", next_items_.padded_values()); }

  static TreeModel of_items_and_mentions(const RecommendSettings& settings, const TrainingData& data) {
    TreeModel model;
    model.item_tree = FactorTree(static_cast<int>(settings.factors.dimension));
    model.item_leaf.assign(data.by_item.rows(), 0);
    model.user_profiles = profiles_of_training(data, ProfileKind::kUser);
    model.item_profiles = profiles_of_training(data, ProfileKind::kItem);
    return model;
  }

  TrainedSide users_;
  TrainedSide items_;
  FactorRows next_items_;  // V_{t−1}
};

TrainingPassReport FactTraining::advance(ExecutionContext& context) {
  const TreeSettings& trees = settings_.trees;
  const std::int64_t pass = passed_ + 1;
  if (pass == 1) next_items_ = first_items(trees.tree_pair_weight);
  const std::vector<ItemPair> pairs =
      trees.tree_pair_weight > 0.0
          ? sample_preference_pairs(data_.by_user, data_.by_item.rows(), trees.pairs_per_rating,
                                    static_cast<std::uint64_t>(settings_.seed), pass)
          : std::vector<ItemPair>{};
  const bool personal_now = trees.personal == PersonalTerms::kEvery;
  TreeModel model = model_.trees();

  double penalty = 0.0;
  const auto add_personal = [&](ExecutionContext* parallel, const TrainedSide& side,
                                const PairSource& of_side, double weight, FactorRows& factors) {
    penalty += add_personal_terms(parallel, side.split, side.rows, &of_side, weight, descent(), factors);
  };

  const UserPairs user_pairs(pairs, data_.by_user.rows(), next_items_);
  GrownTree of_users =
      grow(context, users_, next_items_, &user_pairs, trees.user_depth, trees.user_penalty);
  penalty += of_users.penalty;
  if (personal_now) add_personal(&context, users_, user_pairs, trees.user_penalty, of_users.factors);
  users_.split.sums = {};
  model.user_tree = std::move(of_users.tree);
  model.user_leaf = std::move(of_users.leaf_of);
  model.users = std::move(of_users.factors);

  const ItemPairs item_pairs(pairs, data_.by_item.rows(), model.users);
  GrownTree of_items =
      grow(context, items_, model.users, &item_pairs, trees.item_depth, trees.item_penalty);
  penalty += of_items.penalty;
  if (personal_now) add_personal(nullptr, items_, item_pairs, trees.item_penalty, of_items.factors);
  model.item_tree = std::move(of_items.tree);
  model.item_leaf = std::move(of_items.leaf_of);
  model.items = std::move(of_items.factors);
  next_items_ = model.items;

  const auto whole_loss = [&] {
    return squared_loss(data_.by_user, model.users, model.items) +
           trees.tree_pair_weight * pair_loss(pairs, model.users, model.items) + penalty;
  };
  end_pass(whole_loss());
  if (!personal_now && finished()) {
    const UserPairs last_pairs(pairs, data_.by_user.rows(), model.items);
    users_.split.sums = squared_sums_of_rows(data_.by_user, model.items);
    add_personal(&context, users_, last_pairs, trees.user_penalty, model.users);
    users_.split.sums = {};
    items_.split.sums = squared_sums_of_rows(data_.by_item, model.users);
    add_personal(nullptr, items_, item_pairs, trees.item_penalty, model.items);
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

/// FMF, functional matrix factorisation: a tree of users whose questions are items, liked, disliked or
/// unknown. Zhou, Yang and Zha, "Functional matrix factorizations for cold-start recommendation", SIGIR
/// 2011.
class FmfTraining : public TreeTraining {
 public:
  FmfTraining(const RecommendSettings& settings, const TrainingData& data)
      : TreeTraining(settings, data, TreeQuestions::kItems),
        users_(profiles_of_ratings(data.by_user, data.by_item.rows()),
               same_threshold(data.by_item.rows(), static_cast<float>(settings.trees.like_at)),
               data.by_user) {}

  TrainingPassReport advance(ExecutionContext& context) override {
    const TreeSettings& trees = settings_.trees;
    TreeModel model = model_.trees();
    if (passed_ == 0) model.items = first_items(0.0);
    GrownTree grown = grow(context, users_, model.items, nullptr, trees.user_depth, trees.user_penalty);
    users_.split.sums = {};
    model.user_tree = std::move(grown.tree);
    model.user_leaf = std::move(grown.leaf_of);
    model.users = std::move(grown.factors);
    const auto [squared, item_penalty] = fit_items(context, model);
    const double penalty = grown.penalty + item_penalty;
    const double loss = squared + penalty;
    end_pass(loss);
    model_.replace(std::move(model));
    return {.pass = passed_, .losses = {{"loss", loss}, {"squared", squared}, {"penalty", penalty}}};
  }

  nlohmann::ordered_json facts() const override {
    const FactorTree& tree = model_.trees().user_tree;
    return {{"user_tree", {{"depth", tree.depth()}, {"nodes", tree.size()}}}, {"settled", settled_}};
  }

 private:
  struct ItemLoss {
    double squared = 0.0;
    double penalty = 0.0;
  };

  /// Item factors by least squares given the factors of leaves; items without a rating get 0.
  ItemLoss fit_items(ExecutionContext& context, TreeModel& model) const {
    constexpr std::int64_t kItemsOfBlock = 32;
    const std::int64_t items = data_.by_item.rows();
    const double weight = settings_.trees.item_penalty;
    const std::vector<double> zero(dimension(), 0.0);
    const std::vector<double> sums = squared_sums_of_rows(data_.by_item, model.users);
    const std::int64_t size = squared_sums_size(dimension());
    std::vector<ItemLoss> losses(items);
    context.for_blocks(items, kItemsOfBlock, [&](std::int64_t begin, std::int64_t end, int) {
      RidgeSolver solver(dimension());
      std::vector<double> factor(dimension());
      for (std::int64_t item = begin; item < end; ++item) {
        const std::span<const double> of_item(sums.data() + item * size, static_cast<std::size_t>(size));
        solver.minimise(of_item, weight, zero, factor);
        losses[item].squared = squared_error(of_item, factor);
        for (int k = 0; k < dimension(); ++k) {
          losses[item].penalty += weight * factor[k] * factor[k];
          model.items.row(item)[k] = static_cast<float>(factor[k]);
        }
      }
    });
    ItemLoss all;
    for (const ItemLoss& loss : losses) {
      all.squared += loss.squared;
      all.penalty += loss.penalty;
    }
    return all;
  }

  TrainedSide users_;
};

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

template <class Training>
std::unique_ptr<RecommenderTraining> start_trees(const RecommendSettings& settings,
                                                 const TrainingData& data) {
  check_tree_depth("user_depth", settings.trees.user_depth, data.by_user, "users");
  if (settings.kind == RecommenderKind::kFact)
    check_tree_depth("item_depth", settings.trees.item_depth, data.by_item, "items");
  return std::make_unique<Training>(settings, data);
}

template <TreeQuestions kQuestions>
std::unique_ptr<Recommender> read_trees(StateReader& state, const ReviewCounts& counts) {
  return std::make_unique<TreeRecommender>(
      read_tree_model(state, kQuestions, counts.users, counts.items, counts.features));
}

constexpr std::array<std::string_view, 10> kFactKeys = {
    "dimension", "user_depth",   "item_depth",   "node_rows",        "parent_factor",
    "personal",  "user_penalty", "item_penalty", "tree_pair_weight", "least_change"};

std::int64_t plan_fmf(const RecommendSettings& settings, const ReviewCounts& counts, int threads) {
  constexpr std::int64_t kDouble = sizeof(double);
  const int dimension = static_cast<int>(settings.factors.dimension);
  const std::int64_t sums = squared_sums_size(dimension) * kDouble;
  const std::int64_t row = FactorRows::padded(dimension) * static_cast<std::int64_t>(sizeof(float));
  // Sums of one side at a time, and per thread those between thresholds; factors in the old and the new
  // model; ratings as profiles with their index.
  return std::max(counts.users, counts.items) * sums + threads * (kMostThresholds + 8) * sums +
         3 * (counts.users + counts.items) * row + counts.reviews * 48;
}

constexpr std::array<std::string_view, 8> kFmfKeys = {"dimension",     "user_depth",   "node_rows",
                                                      "parent_factor", "user_penalty", "item_penalty",
                                                      "least_change",  "like_at"};

}  // namespace

constinit const RecommenderKindRow kFactKind = {
    RecommenderKind::kFact,
    "two trees over what reviews mention, with factors in their leaves",
    10,
    kFactKeys,
    true,
    nullptr,
    plan_fact,
    start_trees<FactTraining>,
    read_trees<TreeQuestions::kFeatures>};
constinit const RecommenderKindRow kFmfKind = {RecommenderKind::kFmf,
                                               "a tree over what users rate, with factors in its leaves",
                                               10,
                                               kFmfKeys,
                                               false,
                                               nullptr,
                                               plan_fmf,
                                               start_trees<FmfTraining>,
                                               read_trees<TreeQuestions::kItems>};

}  // namespace olrank
