#include "models/neural/list_objective.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/neural/full_batch_trainer.h"
#include "models/ranker_factory.h"
#include "tests/models/neural/plain_training.h"

namespace olrank {
namespace {

constexpr ListLoss kLosses[] = {ListLoss::kListNet, ListLoss::kSmoothDcg, ListLoss::kRankSvm,
                                ListLoss::kRankNet, ListLoss::kListMle};

/// Three lists of seven documents, which share some.
struct SharedLists {
  std::vector<ExaminedList> lists = {{0, 0, 3, 0}, {3, 0, 4, 0}, {7, 0, 2, 0}};
  std::vector<std::int32_t> rows = {4, 0, 6, 1, 4, 2, 3, 5, 0};
  std::vector<std::uint8_t> clicks = {1, 0, 0, 0, 1, 1, 0, 1, 0};

  PairLists view() const { return {lists, rows, clicks, {}, 0, {}}; }
};

ListLossForm online_form(ListLoss loss) {
  return {.loss = loss, .most_grade = 1};
}

/// Σ of the lists' losses, one by one, and the slopes of all documents.
double plain_list_loss(ListLoss loss, const SharedLists& lists, const std::vector<double>& scores,
                       std::vector<double>& slopes) {
  Scratch scratch;
  double total = 0.0;
  slopes.assign(scores.size(), 0.0);
  for (const ExaminedList& list : lists.lists) {
    std::vector<double> of_list;
    for (std::int32_t place = 0; place < list.docs; ++place) {
      of_list.push_back(scores[lists.rows[list.first_doc + place]]);
    }
    std::vector<double> list_slopes(of_list.size());
    total += list_loss(online_form(loss), of_list,
                       std::span(lists.clicks).subspan(list.first_doc, list.docs), scratch, list_slopes);
    for (std::int32_t place = 0; place < list.docs; ++place) {
      slopes[lists.rows[list.first_doc + place]] += list_slopes[place];
    }
  }
  return total;
}

TEST(ListObjectiveTest, IsTheSumOverListsWhichShareDocuments) {
  const SharedLists lists;
  const std::vector<float> scores = random_numbers(7, 3);
  ExecutionContext context;
  for (const ListLoss loss : kLosses) {
    ListObjective objective(loss);
    std::vector<double> slopes(7, 5.0);
    std::vector<double> expected;
    const double plain = plain_list_loss(loss, lists, {scores.begin(), scores.end()}, expected);
    EXPECT_EQ(objective.loss_of_scores(context, lists.view(), scores, slopes), plain) << name_of(loss);
    EXPECT_EQ(slopes, expected) << name_of(loss);
  }
}

/// The Hessian in the documents' scores, by differences of slopes.
Eigen::MatrixXd hessian_of(ListLoss loss, const SharedLists& lists, const std::vector<double>& scores) {
  constexpr double kStep = 1e-4;
  const auto docs = std::ssize(scores);
  Eigen::MatrixXd hessian(docs, docs);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    std::vector<double> moved = scores;
    std::vector<double> up;
    std::vector<double> down;
    moved[doc] = scores[doc] + kStep;
    plain_list_loss(loss, lists, moved, up);
    moved[doc] = scores[doc] - kStep;
    plain_list_loss(loss, lists, moved, down);
    for (std::int64_t row = 0; row < docs; ++row) hessian(row, doc) = (up[row] - down[row]) / (2.0 * kStep);
  }
  return hessian;
}

TEST(ListObjectiveTest, CurvatureOfItsTermsIsAnUpperBound) {
  const SharedLists lists;
  RngStream draws(test_key(5), 1);
  for (const ListLoss loss : kLosses) {
    if (loss == ListLoss::kRankSvm) continue;  // has no Hessian
    ListObjective objective(loss);
    Eigen::MatrixXd bound = Eigen::MatrixXd::Zero(7, 7);
    for (const PairTerm& term : objective.curvature_terms(lists.view())) {
      Eigen::VectorXd difference = Eigen::VectorXd::Zero(7);
      difference[term.first] = 1.0;
      difference[term.second] = -1.0;
      bound += 0.25 * term.weight * difference * difference.transpose();
    }
    double most_share = 0.0;
    for (int draw = 0; draw < 300; ++draw) {
      std::vector<double> scores(7);
      const double scale = draw == 0 ? 0.0 : std::pow(10.0, 2.0 * draws.uniform() - 1.5);
      for (double& score : scores) score = scale * draws.normal();
      const Eigen::MatrixXd hessian = hessian_of(loss, lists, scores);
      const Eigen::MatrixXd left = bound - 0.5 * (hessian + hessian.transpose());
      // Differences of slopes are off by 1e-8.
      EXPECT_GE(Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(left).eigenvalues()[0], -1e-6)
          << name_of(loss);
      const auto largest = [](const Eigen::MatrixXd& matrix) {
        return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(matrix).eigenvalues()[6];
      };
      most_share = std::max(most_share, largest(0.5 * (hessian + hessian.transpose())) / largest(bound));
    }
    EXPECT_GT(most_share, loss == ListLoss::kSmoothDcg ? 0.05 : 0.3) << name_of(loss);
  }
}

TEST(ListObjectiveTest, PairsOfTwoListsAreOneTerm) {
  SharedLists lists;
  lists.rows = {4, 0, 6, 1, 4, 0, 3, 5, 0};
  ListObjective objective(ListLoss::kListNet);
  const auto terms = objective.curvature_terms(lists.view());
  EXPECT_EQ(std::ssize(terms), 3 + 6 + 1 - 1);
  const auto shared = std::find_if(
      terms.begin(), terms.end(), [](const PairTerm& term) { return term.first == 0 && term.second == 4; });
  ASSERT_NE(shared, terms.end());
  EXPECT_DOUBLE_EQ(shared->weight, 2.0 / 3.0 + 2.0 / 4.0);
}

/// Impressions of a list of ten documents.
struct ListWorld {
  static constexpr std::int64_t kFeatures = 5;
  static constexpr std::int64_t kDocs = 10;

  explicit ListWorld(std::uint64_t seed) : values(random_numbers(kDocs * kFeatures, seed)) {}

  void add(DocumentHistory& history, std::uint32_t round) {
    RngStream draws(test_key(7), round);
    std::vector<std::int32_t> shown = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    draws.shuffle(std::span(shown));
    shown.resize(6);
    std::vector<std::uint8_t> clicks(6);
    for (std::uint8_t& click : clicks) click = static_cast<std::uint8_t>(draws.index(2));
    clicks[0] = 0;
    clicks[3] = 1;
    clicks[5] = 1;  // the last one: all are examined
    const Feedback feedback{round, {0, 0, {values.data(), kDocs, kFeatures}}, shown, clicks};
    history.add(feedback, std::vector<PreferencePair>{{shown[3], shown[0]}});
  }

  std::vector<float> values;
};

TEST(ListObjectiveTest, TrainingStepsDownTheListsLossAndThePrior) {
  const NetworkShape shape = ntk_shape(ListWorld::kFeatures, 6, 2);
  const NetworkModel model = network_of(shape);
  constexpr double kLambda = 0.5;
  const double prior = 0.5 * static_cast<double>(shape.width) * kLambda;
  for (const ListLoss loss : kLosses) {
    ListWorld world(11);
    DocumentHistory history(ListWorld::kFeatures, HistoryContent{.lists = true});
    for (std::uint32_t round = 1; round <= 5; ++round) world.add(history, round);
    std::vector<float> first(shape.parameters());
    initialise(shape, Initialisation::kSymmetric, test_key(3), first);
    std::vector<float> theta = first;
    for (std::size_t k = 0; k < theta.size(); k += 2) theta[k] += 0.05F;
    TrainerSettings settings;
    settings.steps = 1;
    FullBatchTrainer trainer({.model = model,
                              .settings = settings,
                              .lambda = kLambda,
                              .prior_weight = prior,
                              .first = first,
                              .batch_key = test_key(1),
                              .list_loss = loss});
    const std::vector<double> began = in_double(theta);
    ExecutionContext context;
    const double step =
        trainer.train(context, {history, history.terms(), false, 1}, std::span(theta)).value();

    SharedLists lists;  // those of the history
    const PairLists kept = history.pair_lists();
    lists.lists.assign(kept.lists.begin(), kept.lists.end());
    lists.rows.assign(kept.rows.begin(), kept.rows.end());
    lists.clicks.assign(kept.clicks.begin(), kept.clicks.end());
    EXPECT_EQ(std::ssize(lists.rows), 30);
    std::vector<double> scores;
    std::vector<std::vector<double>> gradients;
    for (std::int64_t doc = 0; doc < history.docs(); ++doc) {
      gradients.emplace_back();
      scores.push_back(plain_network(shape, began, history.features().doc(doc).data(), &gradients.back()));
    }
    std::vector<double> slopes;
    plain_list_loss(loss, lists, scores, slopes);
    double way = 0.0;
    for (std::size_t k = 0; k < theta.size(); ++k) {
      double slope = 2.0 * prior * (began[k] - double{first[k]});
      for (std::size_t doc = 0; doc < scores.size(); ++doc) slope += slopes[doc] * gradients[doc][k];
      way = std::max(way, std::fabs(step * slope));
      // Forward and backward passes in float32, whose terms are near 1.
      EXPECT_TRUE(std::fabs(theta[k] - (began[k] - step * slope)) <= 1e-5) << name_of(loss);
    }
    EXPECT_GT(way, 1e-3);
  }
}

TEST(ListObjectiveTest, CountsForNetworksThatTrainOnTheirHistoryWithTheSummedLoss) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kPaper);
  EXPECT_EQ(list_loss_of(settings), std::nullopt);
  settings.trainer.loss_kind = TrainingLoss::kListMle;
  EXPECT_EQ(list_loss_of(settings), ListLoss::kListMle);
  settings.trainer.loss = LossForm::kMean;
  EXPECT_EQ(list_loss_of(settings), std::nullopt);
  settings.trainer.loss = LossForm::kSum;
  settings.kind = RankerKind::kOlLambdaRank;
  EXPECT_EQ(list_loss_of(settings), std::nullopt);
  for (const auto& [loss, name] : EnumNames<TrainingLoss>::values) {
    settings.kind = RankerKind::kP2NeurRank;
    settings.trainer.loss_kind = loss;
    const auto of_lists = list_loss_of(settings);
    EXPECT_EQ(of_lists ? name_of(*of_lists) : "pairs", name);
  }
}

std::string refusal(const RankerSettings& settings) {
  try {
    check_ranker(settings, 10);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

TEST(ListObjectiveTest, RefusesWhatHasNoGradesOrNoLists) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kPaper);
  settings.trainer.loss_kind = TrainingLoss::kListNet;
  EXPECT_EQ(refusal(settings), "");
  EXPECT_EQ(why_not_on_device(settings), "loss_kind = \"listnet\" has no device implementation");
  settings.trainer.retrain = Retrain::kGrowth;
  EXPECT_NE(refusal(settings).find("whole lists"), std::string::npos) << refusal(settings);

  RankerSettings ensemble = RankerSettings::defaults(RankerKind::kP2NeurRank, ProtocolName::kPaper);
  ensemble.trainer.loss_kind = TrainingLoss::kListNet;
  EXPECT_NE(refusal(ensemble).find("noise_variance = 0"), std::string::npos) << refusal(ensemble);
  ensemble.posterior.noise_variance = 0.0;
  EXPECT_EQ(refusal(ensemble), "");
}

}  // namespace
}  // namespace olrank
