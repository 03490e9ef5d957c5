#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/state_archive.h"
#include "recommend/recommender.h"
#include "recommend/trees/fact_training.h"
#include "recommend/trees/tree_growth.h"
#include "recommend/trees/tree_model.h"

namespace olrank {
namespace {

/// A user's profile is what the user rated.
Profiles profiles_of_ratings(const RatingRows& by_user, std::int64_t items) {
  Profiles profiles;
  profiles.features = items;
  profiles.begin = by_user.ends;
  for (std::size_t place = 0; place < by_user.others.size(); ++place)
    profiles.entries.push_back({by_user.others[place], by_user.ratings[place]});
  return profiles;
}

/// FMF, functional matrix factorisation: a tree of users whose questions are items, liked, disliked or
/// unknown. Zhou, Yang and Zha, "Functional matrix factorizations for cold-start recommendation", SIGIR
/// 2011.
class FmfTraining : public RecommenderTraining {
 public:
  FmfTraining(const RecommendSettings& settings, const TrainingData& data)
      : RecommenderTraining(settings.passes),
        settings_(settings),
        data_(data),
        profiles_(profiles_of_ratings(data.by_user, data.by_item.rows())),
        thresholds_(same_threshold(data.by_item.rows(), static_cast<float>(settings.trees.like_at))),
        model_(unlearned()) {
    split_.profiles = &profiles_;
    split_.thresholds = &thresholds_;
    split_.reached = reached_thresholds(profiles_, thresholds_);
    split_.dimension = dimension();
    for (std::int64_t user = 0; user < data.by_user.rows(); ++user) {
      if (data.by_user.count(user) > 0) rows_.push_back(static_cast<std::int32_t>(user));
    }
  }

  bool finished() const override { return settled_ || passed_ >= passes(); }
  const Recommender& model() const override { return model_; }

  TrainingPassReport advance(ExecutionContext& context) override {
    const TreeSettings& trees = settings_.trees;
    TreeModel model = model_.trees();
    if (passed_ == 0) {
      model.items = factorise_ratings(data_.by_user, data_.by_item.rows(),
                                      {.dimension = dimension(),
                                       .passes = settings_.trees.start_passes,
                                       .pair_weight = 0.0,
                                       .seed = static_cast<std::uint64_t>(settings_.seed)});
    }
    split_.sums = squared_sums_of_rows(data_.by_user, model.items);
    GrownTree grown = grow_tree(context, split_, rows_, nullptr,
                                {.depth = static_cast<int>(trees.user_depth),
                                 .least_rows = trees.node_rows,
                                 .penalty = trees.user_penalty,
                                 .parent_factor = trees.parent_factor,
                                 .descent = {}});
    split_.sums = {};
    model.user_tree = std::move(grown.tree);
    model.user_leaf = std::move(grown.leaf_of);
    model.users = std::move(grown.factors);
    const auto [squared, item_penalty] = fit_items(context, model);
    const double penalty = grown.penalty + item_penalty;
    const double loss = squared + penalty;
    ++passed_;
    settled_ = passed_ > 1 && std::fabs(loss_ - loss) < trees.least_change * std::fabs(loss_);
    loss_ = loss;
    model_.replace(std::move(model));
    return {.pass = passed_, .losses = {{"loss", loss}, {"squared", squared}, {"penalty", penalty}}};
  }

  nlohmann::ordered_json facts() const override {
    const FactorTree& tree = model_.trees().user_tree;
    return {{"user_tree", {{"depth", tree.depth()}, {"nodes", tree.size()}}}, {"settled", settled_}};
  }

  void fields(StateFields& state) override {
    state.numbers("fmf.passed", passed_);
    state.numbers("fmf.loss", loss_);
    state.number("fmf.settled", std::int64_t{settled_}, [this](std::int64_t one) { settled_ = one != 0; });
    if (!state.reads()) return model_.save(state.writer());
    model_.replace(read_tree_model(state.reader(), TreeQuestions::kItems, data_.by_user.rows(),
                                   data_.by_item.rows(), 0));
  }

 private:
  int dimension() const { return static_cast<int>(settings_.factors.dimension); }

  TreeModel unlearned() const {
    TreeModel model;
    model.questions = TreeQuestions::kItems;
    model.user_tree = FactorTree(dimension());
    model.users = FactorRows(data_.by_user.rows(), dimension());
    model.user_leaf.assign(data_.by_user.rows(), 0);
    model.items = FactorRows(data_.by_item.rows(), dimension());
    return model;
  }

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

  const RecommendSettings settings_;
  const TrainingData& data_;
  Profiles profiles_;
  Thresholds thresholds_;
  SplitData split_;
  std::vector<std::int32_t> rows_;
  TreeRecommender model_;
  double loss_ = 0.0;
  bool settled_ = false;
};

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

std::unique_ptr<RecommenderTraining> start_fmf(const RecommendSettings& settings,
                                               const TrainingData& data) {
  check_tree_depth("user_depth", settings.trees.user_depth, data.by_user, "users");
  return std::make_unique<FmfTraining>(settings, data);
}

std::unique_ptr<Recommender> read_fmf(StateReader& state, const ReviewCounts& counts) {
  return std::make_unique<TreeRecommender>(
      read_tree_model(state, TreeQuestions::kItems, counts.users, counts.items, counts.features));
}

constexpr std::array<std::string_view, 8> kFmfKeys = {"dimension",     "user_depth",   "node_rows",
                                                      "parent_factor", "user_penalty", "item_penalty",
                                                      "least_change",  "like_at"};

}  // namespace

constinit const RecommenderKindRow kFmfKind = {RecommenderKind::kFmf,
                                               "a tree over what users rate, with factors in its leaves",
                                               10,
                                               kFmfKeys,
                                               false,
                                               nullptr,
                                               plan_fmf,
                                               start_fmf,
                                               read_fmf};

}  // namespace olrank
