#include "models/labels/label_solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "core/data/query_weights.h"
#include "core/error.h"
#include "models/labels/label_training.h"
#include "models/linear/linear_belief.h"
#include "models/neural/ranker_network.h"
#include "tests/models/small_world.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

constexpr std::int64_t kLabelFeatures = 6;

const LabelledWorld& label_world() {
  static const LabelledWorld world(11, 25, 9, kLabelFeatures);
  return world;
}

const Dataset& uneven_world() {
  static const Dataset data = weighted(label_world().data(), {2.0F, 0.0F, 0.3F, 7.0F});
  return data;
}

LabelSettings solver_settings(ListLoss loss, LabelOptimizer optimizer) {
  LabelSettings settings;
  settings.loss = loss;
  settings.network.network = NetworkForm::kLinear;
  settings.optimizer = optimizer;
  settings.l2 = 0.01;
  return settings;
}

double length(std::span<const double> v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

/// The mean over queries of ListNet's loss by their weights, and λ/2 ‖w‖², by the formula.
double slow_listnet(const Dataset& data, std::span<const double> w, double l2) {
  const LabelledQueries labels(data);
  double sum = 0.0;
  double sum_of_weights = 0.0;
  for (std::int64_t query = 0; query < labels.queries(); ++query) {
    const FeatureMatrix docs = labels.data().features_of(query);
    const auto grades = labels.grades_of(query).of_doc;
    const double weight = data.contents().weights.empty() ? 1.0 : double{data.contents().weights[query]};
    sum_of_weights += weight;
    double of_scores = 0.0;
    double of_grades = 0.0;
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      of_scores += std::exp(dot(w, docs.doc(doc)));
      of_grades += std::exp(static_cast<double>(grades[doc]));
    }
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      sum -= weight * std::exp(static_cast<double>(grades[doc])) / of_grades *
             (dot(w, docs.doc(doc)) - std::log(of_scores));
    }
  }
  return sum / sum_of_weights + 0.5 * l2 * length(w) * length(w);
}

std::vector<double> slow_gradient(const Dataset& data, std::span<const double> w, double l2) {
  std::vector<double> gradient(w.size());
  for (std::size_t k = 0; k < w.size(); ++k) {
    std::vector<double> up(w.begin(), w.end());
    std::vector<double> down = up;
    up[k] += 1e-5;
    down[k] -= 1e-5;
    gradient[k] = (slow_listnet(data, up, l2) - slow_listnet(data, down, l2)) / 2e-5;
  }
  return gradient;
}

/// A solver with what it needs.
struct Solved {
  explicit Solved(const LabelSettings& settings, int threads = 1,
                  const Dataset& data = label_world().data(),
                  const std::vector<float>& first = std::vector<float>(kLabelFeatures), int most_grade = 4)
      : labels(data),
        model(kLabelFeatures),
        objective(model, labels, settings.loss_form(most_grade), threads, nullptr, relative_weights(data)),
        solver(make_label_solver(settings, objective, make_key({.purpose = Purpose::kBatch}), first)) {}
  void run(int passes) {
    for (int pass = 0; pass < passes && !solver->converged(); ++pass) latest = solver->advance();
  }
  std::vector<double> theta() const { return {solver->theta().begin(), solver->theta().end()}; }

  LabelledQueries labels;
  LinearModel model;
  LabelObjective objective;
  std::unique_ptr<LabelSolver> solver;
  double latest = 0.0;
};

TEST(LabelSolverTest, LbfgsEndsWhereTheGradientVanishes) {
  for (const Dataset& data : {label_world().data(), uneven_world()}) {
    Solved solved(solver_settings(ListLoss::kListNet, LabelOptimizer::kLbfgs), 1, data);
    solved.run(200);
    EXPECT_TRUE(solved.solver->converged());
    const std::vector<double> w = solved.theta();
    EXPECT_LT(length(slow_gradient(data, w, 0.01)), 1e-4 * std::max(1.0, length(w)));
    EXPECT_NEAR(solved.latest, slow_listnet(data, w, 0.01), 1e-6);
  }
}

TEST(LabelSolverTest, ProximalWithoutL1EndsAtTheSamePoint) {
  Solved lbfgs(solver_settings(ListLoss::kListNet, LabelOptimizer::kLbfgs));
  Solved proximal(solver_settings(ListLoss::kListNet, LabelOptimizer::kProximal));
  lbfgs.run(200);
  proximal.run(3000);
  for (std::size_t k = 0; k < kLabelFeatures; ++k) EXPECT_NEAR(proximal.theta()[k], lbfgs.theta()[k], 2e-3);
  EXPECT_NEAR(proximal.latest, lbfgs.latest, 1e-6);
}

TEST(LabelSolverTest, ProximalMeetsTheConditionsOfL1) {
  LabelSettings settings = solver_settings(ListLoss::kListNet, LabelOptimizer::kProximal);
  settings.l1 = 0.05;
  Solved solved(settings);
  solved.run(3000);
  const std::vector<double> w = solved.theta();
  const std::vector<double> gradient = slow_gradient(label_world().data(), w, settings.l2);
  int zeros = 0;
  for (std::size_t k = 0; k < kLabelFeatures; ++k) {
    if (w[k] == 0.0) {
      ++zeros;
      EXPECT_LE(std::abs(gradient[k]), settings.l1 + 1e-3);
    } else {
      EXPECT_NEAR(gradient[k], w[k] > 0.0 ? -settings.l1 : settings.l1, 2e-3);
    }
  }
  EXPECT_GT(zeros, 0);
  EXPECT_LT(zeros, kLabelFeatures);
}

TEST(LabelSolverTest, ARadiusBoundsTheParameters) {
  for (const BallNorm norm : {BallNorm::kL2, BallNorm::kL1}) {
    for (const LabelOptimizer optimizer : {LabelOptimizer::kProximal, LabelOptimizer::kOgdAverage}) {
      LabelSettings settings = solver_settings(ListLoss::kListNet, optimizer);
      settings.radius = 0.3;
      settings.radius_norm = norm;
      settings.learning_rate = optimizer == LabelOptimizer::kOgdAverage ? 0.5 : 0.0;
      Solved solved(settings);
      solved.run(50);
      double size = 0.0;
      for (const double entry : solved.theta()) size += std::abs(entry);
      if (norm == BallNorm::kL2) size = length(solved.theta());
      EXPECT_LE(size, 0.3 + 1e-6);
      EXPECT_GT(size, 0.2);
    }
  }
}

TEST(LabelSolverTest, AveragedDescentIsTheMeanOfItsIterates) {
  LabelSettings settings = solver_settings(ListLoss::kListNet, LabelOptimizer::kOgdAverage);
  settings.l2 = 0.0;
  Solved solved(settings);
  solved.run(1);
  // The theorem's step: G = 2 for ListNet.
  const double step = 1.0 / (2.0 * solved.objective.longest_row() * std::sqrt(2.0 * 25.0));
  EXPECT_NEAR(guaranteed_step(settings, solved.objective), step, 1e-12);
  std::vector<std::int64_t> order(25);
  std::iota(order.begin(), order.end(), 0);
  RngStream(make_key({.purpose = Purpose::kBatch}), 1, 0, 1).shuffle(std::span(order));
  std::vector<double> w(kLabelFeatures, 0.0);
  std::vector<double> sum(kLabelFeatures, 0.0);
  for (const std::int64_t query : order) {
    const FeatureMatrix docs = solved.labels.data().features_of(query);
    const auto grades = solved.labels.grades_of(query).of_doc;
    double of_scores = 0.0;
    double of_grades = 0.0;
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      of_scores += std::exp(dot(w, docs.doc(doc)));
      of_grades += std::exp(static_cast<double>(grades[doc]));
    }
    std::vector<double> moved = w;
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      const double slope = std::exp(dot(w, docs.doc(doc))) / of_scores -
                           std::exp(static_cast<double>(grades[doc])) / of_grades;
      for (std::size_t k = 0; k < kLabelFeatures; ++k) moved[k] -= step * slope * double{docs.doc(doc)[k]};
    }
    for (std::size_t k = 0; k < kLabelFeatures; ++k) sum[k] += w[k];
    w = moved;
  }
  for (std::size_t k = 0; k < kLabelFeatures; ++k) EXPECT_NEAR(solved.theta()[k], sum[k] / 25.0, 1e-5);
}

TEST(LabelSolverTest, LbfgsLowersEveryLossEvenWithKinks) {
  for (const ListLoss loss : {ListLoss::kRankSvm, ListLoss::kRankNet, ListLoss::kListMle,
                              ListLoss::kSmoothDcg, ListLoss::kRankCosine}) {
    const std::vector<float> first(kLabelFeatures, loss == ListLoss::kRankCosine ? 0.1F : 0.0F);
    Solved solved(solver_settings(loss, LabelOptimizer::kLbfgs), 1, label_world().data(), first, 2);
    const double before = solved.objective.mean_of_all(first, {});
    double after = before;
    for (int pass = 0; pass < 60; ++pass) {
      const double latest = solved.solver->advance();
      EXPECT_LE(latest, after + 1e-9);
      after = latest;
    }
    EXPECT_LT(after, 0.95 * before) << name_of(loss);
  }
}

TEST(LabelSolverTest, TheSameBitsOnAnyNumberOfThreadsAndAfterARestart) {
  for (const LabelOptimizer optimizer : {LabelOptimizer::kAdam, LabelOptimizer::kLbfgs,
                                         LabelOptimizer::kOgdAverage, LabelOptimizer::kProximal}) {
    LabelSettings settings = solver_settings(ListLoss::kListNet, optimizer);
    settings.learning_rate_decay = optimizer == LabelOptimizer::kAdam ? 0.9 : 1.0;
    Solved one(settings, 1, uneven_world());
    one.run(6);
    Solved three(settings, 3, uneven_world());
    three.run(6);
    EXPECT_EQ(one.theta(), three.theta()) << name_of(optimizer);
    Solved first(settings, 2, uneven_world());
    first.run(3);
    const std::string state = state_of(*first.solver);
    Solved rest(settings, 1, uneven_world());
    load_state(*rest.solver, state);
    rest.run(3);
    EXPECT_EQ(one.theta(), rest.theta()) << name_of(optimizer);
  }
}

TEST(LabelObjectiveTest, GradientsOfNetworksMatchDifferencesOfTheLoss) {
  NetworkSettings network;
  network.width = 6;
  network.depth = 3;
  network.parameterisation = Parameterisation::kStandard;
  const NetworkModel model(network, kLabelFeatures);
  const LabelledQueries labels = label_world().labels();
  std::vector<float> theta =
      model.first_parameters(make_key({.seed = 3, .purpose = Purpose::kInitialisation}));
  for (float& entry : theta) entry *= 3.0F;
  for (const ListLoss loss : {ListLoss::kListNet, ListLoss::kRankNet}) {
    LabelSettings settings;
    settings.loss = loss;
    LabelObjective objective(model, labels, settings.loss_form(4), 2);
    std::vector<double> gradient(theta.size());
    const double mean = objective.mean_of_all(theta, gradient);
    EXPECT_NEAR(mean, objective.mean_of_all(theta, {}), 1e-12);
    for (std::size_t k = 0; k < theta.size(); k += 7) {
      std::vector<float> up = theta;
      std::vector<float> down = theta;
      up[k] += 0.01F;
      down[k] -= 0.01F;
      const double difference = (objective.mean_of_all(up, {}) - objective.mean_of_all(down, {})) /
                                (double{up[k]} - double{down[k]});
      // The second difference of a loss of this size, and kinks of ReLU within ±0.01.
      EXPECT_NEAR(gradient[k], difference, 5e-3 * std::max(1.0, std::abs(mean)))
          << name_of(loss) << ' ' << k;
    }
  }
}

TEST(LabelSolverTest, EqualWeightsAreTheSameBitsAsNone) {
  const Dataset ones = weighted(label_world().data(), {1.0F});
  const Dataset fours = weighted(label_world().data(), {4.0F});
  for (const auto& [optimizer, name] : EnumNames<LabelOptimizer>::values) {
    const LabelSettings settings = solver_settings(ListLoss::kListNet, optimizer);
    Solved without(settings);
    without.run(4);
    for (const Dataset& data : {ones, fours}) {
      Solved solved(settings, 1, data);
      solved.run(4);
      EXPECT_EQ(solved.theta(), without.theta()) << name;
      EXPECT_EQ(solved.latest, without.latest) << name;
    }
  }
}

TEST(LabelSolverTest, TheGuaranteedStepKnowsTheLargestWeight) {
  const LabelSettings settings = solver_settings(ListLoss::kListNet, LabelOptimizer::kOgdAverage);
  const Solved plain(settings);
  const Solved solved(settings, 1, uneven_world());
  // 25 queries of 2, 0, 0.3 and 7 in turn.
  const double mean = (7.0 * 2.0 + 6.0 * 0.3 + 6.0 * 7.0) / 25.0;
  EXPECT_NEAR(solved.objective.largest_slopes(), 2.0 * 7.0 / mean, 1e-6);
  EXPECT_NEAR(guaranteed_step(settings, solved.objective),
              guaranteed_step(settings, plain.objective) * mean / 7.0, 1e-9);
}

// By the documents' losses and not their weights: a query that is asked for several times counts so often.
TEST(LabelObjectiveTest, WholeWeightsCountAsCopiesOfTheQuery) {
  const std::vector<float> weights = {2.0F, 0.0F, 1.0F, 3.0F};
  const Dataset data = weighted(label_world().data(), weights);
  std::vector<std::int64_t> copies;
  for (std::int64_t query = 0; query < data.queries(); ++query)
    copies.insert(copies.end(), static_cast<std::size_t>(data.contents().weights[query]), query);
  NetworkSettings network;
  network.width = 6;
  for (const NetworkForm form : {NetworkForm::kLinear, NetworkForm::kMlp, NetworkForm::kModule}) {
    network.network = form;
    network.module = form == NetworkForm::kModule ? "residual" : "";
    std::unique_ptr<ScoreModel> model = std::make_unique<LinearModel>(kLabelFeatures);
    std::vector<float> theta = {0.3F, -0.2F, 0.1F, 0.5F, -0.4F, 0.2F};
    if (form != NetworkForm::kLinear) {
      auto tangent = make_tangent_model(network, kLabelFeatures, std::nullopt);
      theta = tangent->first_parameters(make_key({.seed = 3, .purpose = Purpose::kInitialisation}));
      for (float& entry : theta) entry += 0.1F;
      model = std::move(tangent);
    }
    for (const auto& [loss, name] : EnumNames<ListLoss>::values) {
      SCOPED_TRACE(testing::Message() << name << ", " << name_of(form));
      LabelObjective plain(*model, label_world().labels(), {.loss = loss}, 1);
      LabelObjective objective(*model, LabelledQueries(data), {.loss = loss}, 1, nullptr,
                               relative_weights(data));
      std::vector<double> expected(theta.size());
      std::vector<double> gradient(theta.size());
      const double mean = plain.mean(theta, copies, expected);
      EXPECT_NEAR(objective.mean_of_all(theta, gradient), mean, 1e-6 * std::max(1.0, mean));
      double largest = 0.0;
      for (const double entry : expected) largest = std::max(largest, std::abs(entry));
      ASSERT_GT(largest, 0.0);
      for (std::size_t k = 0; k < theta.size(); ++k) EXPECT_NEAR(gradient[k], expected[k], 1e-5 * largest);
    }
  }
}

TEST(LabelSolverTest, ProjectionsAreNearestPoints) {
  const auto projected = [](BallNorm norm, double radius, std::vector<double> w) {
    project_on_ball(norm, radius, w);
    return w;
  };
  // Exact in binary, and so are zeros of the ℓ1 ball: 3 − θ + 0 + 0 = 2 for θ = 1, and θ = ½.
  using Point = std::vector<double>;
  EXPECT_EQ(projected(BallNorm::kL2, 2.5, {3.0, -4.0}), (Point{1.5, -2.0}));
  EXPECT_EQ(projected(BallNorm::kL1, 2.0, {3.0, -1.0, 0.5}), (Point{2.0, 0.0, 0.0}));
  EXPECT_EQ(projected(BallNorm::kL1, 2.5, {2.0, -1.5, 0.5}), (Point{1.5, -1.0, 0.0}));
  EXPECT_EQ(projected(BallNorm::kL1, 1.0, {0.1, 0.2}), (Point{0.1, 0.2}));
}

TEST(LabelSettingsTest, RefusesWhatExcludesEachOther) {
  const auto check = [](ListLoss loss, LabelOptimizer optimizer,
                        NetworkForm network = NetworkForm::kLinear) {
    LabelSettings settings = solver_settings(loss, optimizer);
    settings.network.network = network;
    check_label_settings(settings);
  };
  for (const ListLoss loss : {ListLoss::kSmoothDcg, ListLoss::kLambdaRank, ListLoss::kRankCosine}) {
    for (const LabelOptimizer optimizer : {LabelOptimizer::kOgdAverage, LabelOptimizer::kProximal})
      EXPECT_THROW(check(loss, optimizer), InvalidArgument);
  }
  EXPECT_THROW(check(ListLoss::kLambdaRank, LabelOptimizer::kLbfgs), InvalidArgument);
  EXPECT_THROW(check(ListLoss::kRankSvm, LabelOptimizer::kProximal), InvalidArgument);
  EXPECT_THROW(check(ListLoss::kListNet, LabelOptimizer::kProximal, NetworkForm::kMlp), InvalidArgument);
  EXPECT_NO_THROW(check(ListLoss::kListNet, LabelOptimizer::kLbfgs));
}

LabelSettings settings_with_patience() {
  LabelSettings settings;
  settings.network.network = NetworkForm::kLinear;
  settings.learning_rate = 0.05;
  settings.batch = 4;
  settings.epochs = 40;
  settings.patience = 3;
  settings.cutoff = 4;
  return settings;
}

TEST(LabelTrainingTest, KeepsTheBestModelByValidation) {
  const LabelledWorld train(1, 20, 8, 4);
  const LabelledWorld vali(2, 12, 8, 4);
  LabelTraining training(settings_with_patience(), {train.data(), &vali.data(), 4}, TrialKeys{1, 1, 0}, {},
                         1);
  // NDCG@4 is the second of 1, 3, 4, 5, 10 by cutoff: the setting's own comes in its place.
  ASSERT_EQ(training.metric_options().cutoffs, (std::vector<std::int64_t>{1, 3, 4, 5, 10}));
  std::vector<double> ndcg = {training.evaluate_first().vali.ndcg[2]};
  std::vector<std::vector<float>> thetas(1);
  while (!training.finished()) {
    ndcg.push_back(training.advance().vali.ndcg[2]);
    thetas.emplace_back(training.theta().begin(), training.theta().end());
  }
  const auto best = std::max_element(ndcg.begin(), ndcg.end()) - ndcg.begin();
  EXPECT_EQ(training.theta_epoch(), best);
  EXPECT_EQ(training.evaluate(vali.data()).metrics.ndcg[2], ndcg[best]);
  EXPECT_TRUE(training.epoch() == best + 3 || training.epoch() == 40);
}

TEST(LabelTrainingTest, ContinuesToTheSameBits) {
  const LabelledWorld train(1, 20, 8, 4);
  const LabelledWorld vali(2, 12, 8, 4);
  LabelSettings settings = settings_with_patience();
  settings.network.network = NetworkForm::kMlp;
  settings.network.width = 6;
  settings.patience = 30;
  const LabelData data{train.data(), &vali.data(), 4};
  const auto advance = [](LabelTraining& training, int passes) {
    for (int pass = 0; pass < passes; ++pass) training.advance();
  };
  LabelTraining whole(settings, data, TrialKeys{1, 1, 0}, {}, 1);
  whole.evaluate_first();
  advance(whole, 8);
  LabelTraining half(settings, data, TrialKeys{1, 1, 0}, {}, 2);
  half.evaluate_first();
  advance(half, 4);
  LabelTraining rest(settings, data, TrialKeys{1, 1, 0}, {}, 3);
  load_state(rest, state_of(half));
  advance(rest, 4);
  EXPECT_EQ(std::vector<float>(whole.theta().begin(), whole.theta().end()),
            std::vector<float>(rest.theta().begin(), rest.theta().end()));
  EXPECT_EQ(whole.theta_epoch(), rest.theta_epoch());
  EXPECT_EQ(whole.final_objective(), rest.final_objective());
}

TEST(LabelTrainingTest, RefusesWhatItCannotLearn) {
  const LabelledWorld train(1, 20, 8, 4);
  LabelSettings settings = settings_with_patience();
  const auto refusal = [&](const Dataset& data, const LabelDevice* device = nullptr) {
    return message_of<Error>([&] {
      const LabelData parts{data, nullptr, 4};
      if (device != nullptr) LabelTraining(settings, parts, TrialKeys{}, {}, 1, *device);
      if (device == nullptr) LabelTraining(settings, parts, TrialKeys{}, {}, 1);
    });
  };
  EXPECT_TRUE(contains(refusal(train.data()), "patience stops training by the validation part"));
  settings.patience = 0;
  EXPECT_EQ(refusal(train.data()), kNoError);
  Dataset::Contents equal = train.data().contents();
  const std::vector<std::uint8_t> grades(static_cast<std::size_t>(train.data().docs()), 2);
  equal.grades = grades;
  EXPECT_TRUE(
      contains(refusal(Dataset(std::move(equal))), "In every query all documents have the same grade"));
  EXPECT_EQ(
      refusal(weighted(train.data(), {0.0F})),
      "The training part: All its queries have the weight 0, so there is nothing to learn: give one a "
      "weight above 0.");
  std::vector<std::uint8_t> one_order(grades);
  one_order.back() = 1;  // of the last query, which has no weight
  Dataset::Contents flat = weighted(train.data(), std::vector<float>(19, 1.0F)).contents();
  flat.weights.back() = 0.0F;
  flat.grades = one_order;
  EXPECT_TRUE(contains(refusal(Dataset(std::move(flat))),
                       "In every query with a weight above 0 all documents have the same grade"));
  const LabelDevice device;
  settings.loss = ListLoss::kSmoothDcg;
  settings.smooth_at = 2;
  for (const NetworkForm network : {NetworkForm::kLinear, NetworkForm::kModule}) {
    settings.network.network = network;
    EXPECT_EQ(refusal(train.data(), &device),
              "A GPU computes smooth-dcg at one rank only: use --device cpu, or smooth_at = 1.");
  }
  settings = LabelSettings();
  settings.network.width = 65536;
  settings.network.depth = 12;
  EXPECT_TRUE(contains(refusal(train.data()),
                       " parameters and what adam keeps of them take 2.1 TB, but this machine has "));
}

TEST(LabelTrainingTest, WeightsAreForTheObjectiveAlone) {
  const LabelledWorld train(1, 20, 8, 4);
  const Dataset data = weighted(train.data(), {5.0F, 1.0F});
  LabelSettings settings = settings_with_patience();
  settings.patience = 0;
  const std::vector<float> theta = {0.3F, -0.2F, 0.1F, 0.5F};
  LabelTraining training(settings, {data, &data, 4}, TrialKeys{}, theta, 1);
  LabelTraining plain(settings, {train.data(), &train.data(), 4}, TrialKeys{}, theta, 1);
  EXPECT_NE(training.final_objective(), plain.final_objective());
  EXPECT_EQ(training.evaluate(data).loss, plain.evaluate(train.data()).loss);
  EXPECT_EQ(*training.evaluate_first().vali_loss, *plain.evaluate_first().vali_loss);
}

}  // namespace
}  // namespace olrank
