#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "core/random/rng_stream.h"
#include "recommend/factors/efm.h"
#include "recommend/factors/factor_matrix.h"
#include "recommend/mter/mter_step.h"
#include "recommend/synthetic_factors.h"

namespace olrank {
namespace {

TEST(PairDrawsTest, DrawsOnlyPreferencesAndEveryReviewAsOften) {
  Reviews reviews;
  for (int item = 0; item < 30; ++item) reviews.names.items.intern("i" + std::to_string(item));
  for (int user = 0; user < 8; ++user) {
    const std::int32_t by = reviews.names.users.intern("u" + std::to_string(user));
    for (int item = 0; item < 5; ++item)
      reviews.add(by, (3 * user + 4 * item) % 30, static_cast<float>(1 + item), {});
  }
  std::vector<std::int64_t> all(reviews.size());
  for (std::int64_t review = 0; review < reviews.size(); ++review) all[review] = review;
  const TrainingData data = make_training_data(reviews, all);
  const PairDraws draws(data.by_user, 30);
  const auto rating = [&](std::int32_t user, std::int32_t item) {
    const auto own = data.by_user.others_of(user);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i] == item) return data.by_user.ratings_of(user)[i];
    }
    return 0.0F;
  };
  std::map<std::pair<int, int>, int> winners;
  bool rated_loser = false;
  constexpr std::int64_t kCount = 400;
  std::vector<ItemPair> pairs(kCount);
  for (std::uint32_t iteration = 0; iteration < 50; ++iteration) {
    for (std::int64_t begin = 0; begin < kCount; begin += PairDraws::kBlock) {
      draws.draw(make_key({.seed = 1}), iteration, begin, kCount,
                 std::span(pairs).subspan(begin, std::min(PairDraws::kBlock, kCount - begin)));
    }
    for (std::size_t s = 0; s < pairs.size(); ++s) {
      ASSERT_GT(rating(pairs[s].user, pairs[s].winner), rating(pairs[s].user, pairs[s].loser));
      ASSERT_GE(pairs[s].user, pairs[std::max<std::size_t>(s, 1) - 1].user);
      rated_loser = rated_loser || rating(pairs[s].user, pairs[s].loser) > 0.0F;
      ++winners[{pairs[s].user, pairs[s].winner}];
    }
  }
  EXPECT_TRUE(rated_loser);
  ASSERT_EQ(winners.size(), 40U);
  for (const auto& [pair, count] : winners) EXPECT_EQ(count, 500);  // ten of 400 in each iteration
}

TEST(PairLossBlockTest, SlopesAndLossAreThoseOfTheFormula) {
  std::vector<float> differences;
  for (int i = -200; i <= 200; ++i) differences.push_back(0.2F * static_cast<float>(i));
  std::vector<float> slopes(differences.size());
  const double loss = pair_slopes(differences, 1.5, slopes);
  double expected = 0.0;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const double z = differences[i];
    expected += std::log1p(std::exp(-z));
    EXPECT_NEAR(slopes[i], -1.5 / (1.0 + std::exp(z)), 1e-6);
  }
  EXPECT_NEAR(loss, expected, 1e-9 * expected);
}

TEST(RowIndexTest, GroupsSamplesInTheirOrder) {
  RowIndex index;
  const std::vector<std::int32_t> rows = {2, 0, -1, 2, 4, 0};
  index.build(rows, 5);
  EXPECT_EQ(std::vector<std::int32_t>(index.samples_of(0).begin(), index.samples_of(0).end()),
            (std::vector<std::int32_t>{1, 5}));
  EXPECT_TRUE(index.samples_of(1).empty());
  EXPECT_EQ(std::vector<std::int32_t>(index.samples_of(2).begin(), index.samples_of(2).end()),
            (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(index.samples_of(4).size(), 1U);
}

TEST(AdagradTest, FollowsTheFormulaAndProjects) {
  std::vector<float> gradient(33);
  std::vector<float> theta(33);
  std::vector<float> squares(33, 0.5F);
  for (int i = 0; i < 33; ++i) {
    gradient[i] = 0.1F * static_cast<float>(i - 16);
    theta[i] = 0.05F;
  }
  std::vector<float> moved = theta;
  std::vector<float> seen = squares;
  adagrad_step(0.1F, true, gradient.data(), seen.data(), moved.data(), 33);
  for (int i = 0; i < 33; ++i) {
    const double square = 0.5 + double{gradient[i]} * gradient[i];
    EXPECT_NEAR(seen[i], square, 1e-6);
    EXPECT_NEAR(moved[i], std::max(0.05 - 0.1 * gradient[i] / std::sqrt(square), 0.0), 1e-6);
  }
}

/// The minimum over x ≥ 0 of a strictly convex function is where no coordinate can improve alone.
TEST(NonnegativeRowTest, SolutionsMeetTheConditionsOfTheMinimum) {
  RngStream random(make_key({.seed = 9}), 0);
  NonnegativeRow row(4);
  std::vector<std::vector<float>> f(40, std::vector<float>(4));
  std::vector<double> targets(40);
  for (int o = 0; o < 40; ++o) {
    for (float& value : f[o]) value = static_cast<float>(random.uniform());
    targets[o] = 2.0 * f[o][0] - 1.5 * f[o][2] + 0.3 * random.normal();
    row.add(f[o], targets[o], 0.7);
  }
  std::vector<float> x(4, 0.5F);
  for (int round = 0; round < 20; ++round) row.solve(0.2, x);
  for (int i = 0; i < 4; ++i) {
    double slope = 2.0 * 0.2 * x[i];
    for (int o = 0; o < 40; ++o) {
      double error = -targets[o];
      for (int j = 0; j < 4; ++j) error += double{f[o][j]} * x[j];
      slope += 2.0 * 0.7 * error * f[o][i];
    }
    EXPECT_GE(slope, -1e-4);
    EXPECT_NEAR(slope * x[i], 0.0, 1e-4);
  }
  EXPECT_EQ(x[2], 0.0F);
}

/// A small problem whose batches hold every entry once, so that an iteration's gradient is the objective's.
class MterStepTest : public testing::TestWithParam<MterForm> {
 protected:
  MterStepTest() {
    ExecutionContext context;
    PlantedFactors planted;
    planted.users = 12;
    planted.items = 10;
    planted.features = 5;
    planted.phrases = 4;
    planted.reviews = 40;
    planted.dimension = 3;
    reviews_ = make_factor_reviews(context, planted);
    std::vector<std::int64_t> all(reviews_.size());
    for (std::int64_t review = 0; review < reviews_.size(); ++review) all[review] = review;
    data_ = make_training_data(reviews_, all);
    settings_.user_dimension = 5;
    settings_.item_dimension = 4;
    settings_.feature_dimension = 3;
    settings_.phrase_dimension = 6;
    settings_.dimension = 5;
    settings_.factor_penalty = 0.3;
    settings_.core_penalty = 0.2;
    settings_.pair_weight = 1.7;
    settings_.pairs = 600;
    tensors_ = make_mter_tensors(data_);
  }

  MterParameters started(MterForm form) const {
    MterParameters parameters(form, settings_, data_.counts());
    parameters.start(3, 5.0);
    return parameters;
  }

  /// The definition: sums over all products.
  static double predicted(const MterParameters& p, std::size_t task, std::int64_t row, std::int64_t column,
                          std::int64_t feature) {
    const auto value = [&](MterSide side, std::int64_t number, std::int64_t place) {
      const auto s = static_cast<std::size_t>(side);
      double sum = p.shared[s].row(number)[place];
      if (p.form == MterForm::kSplit) sum += p.own[task][s].row(number)[place];
      return sum;
    };
    double sum = 0.0;
    const std::int64_t width = p.width();
    if (p.form != MterForm::kTucker) {
      for (std::int64_t i = 0; i < width; ++i)
        sum += value(kRowSide[task], row, i) * value(kColumnSide[task], column, i) *
               value(MterSide::kFeature, feature, i);
      return sum;
    }
    for (std::int64_t r = 0; r < width; ++r) {
      for (std::int64_t t = 0; t < width; ++t) {
        for (std::int64_t v = 0; v < p.cores[task].rows; ++v)
          sum += double{p.cores[task].row(v)[r * width + t]} * value(kRowSide[task], row, r) *
                 value(kColumnSide[task], column, t) * value(MterSide::kFeature, feature, v);
      }
    }
    return sum;
  }

  double objective(const MterParameters& p, std::span<const ItemPair> pairs) const {
    double loss = 0.0;
    const std::array<const SparseTensor*, 3> tensors = {&tensors_.preferences, &tensors_.user_phrases,
                                                        &tensors_.item_phrases};
    for (std::size_t task = 0; task < 3; ++task) {
      double squares = 0.0;
      for (std::int64_t e = 0; e < tensors[task]->size(); ++e) {
        const double error =
            predicted(p, task, tensors[task]->row[e], tensors[task]->column[e], tensors[task]->feature[e]) -
            tensors[task]->value[e];
        squares += error * error;
      }
      loss += squares / static_cast<double>(tensors[task]->size());
    }
    const std::int64_t overall = reviews_.names.features.size();
    double of_pairs = 0.0;
    for (const ItemPair& pair : pairs) {
      const double z = predicted(p, 0, pair.user, pair.winner, overall) -
                       predicted(p, 0, pair.user, pair.loser, overall);
      of_pairs += std::log1p(std::exp(-z));
    }
    if (!pairs.empty()) loss += settings_.pair_weight * of_pairs / static_cast<double>(pairs.size());
    const auto mean_square = [](const FactorMatrix& matrix) {
      double sum = 0.0;
      for (const float v : matrix.values) sum += double{v} * double{v};
      return matrix.rows == 0 ? 0.0 : sum / static_cast<double>(matrix.rows);
    };
    for (const FactorMatrix& matrix : p.shared) loss += settings_.factor_penalty * mean_square(matrix);
    for (const auto& task : p.own) {
      for (const FactorMatrix& matrix : task) loss += settings_.factor_penalty * mean_square(matrix);
    }
    for (const FactorMatrix& core : p.cores) loss += settings_.core_penalty * mean_square(core);
    return loss;
  }

  Reviews reviews_;
  TrainingData data_;
  FactorSettings settings_;
  MterTensors tensors_;
};

TEST_P(MterStepTest, GradientsOfEveryBlockAreDifferenceQuotients) {
  MterParameters parameters = started(GetParam());
  const PairDraws draws(data_.by_user, reviews_.names.items.size());
  MterStep step(settings_, tensors_, draws, data_.counts(), 1);
  ExecutionContext context;
  step.gradients(context, parameters, 0);
  const std::vector<ItemPair> pairs(step.pairs().pairs().begin(), step.pairs().pairs().end());
  ASSERT_EQ(step.batch_size(0), tensors_.preferences.size());
  int checked = 0;
  const auto check = [&](float& value, float gradient) {
    const float kept = value;
    // Central differences in double err by h²/6 times a third derivative of a few units, and the gradient
    // by the rounding of floats.
    constexpr double h = 1e-3;
    value = kept + static_cast<float>(h);
    const double up_by = double{value} - kept;
    const double up = objective(parameters, pairs);
    value = kept - static_cast<float>(h);
    const double down_by = kept - double{value};
    const double down = objective(parameters, pairs);
    value = kept;
    const double quotient = (up - down) / (up_by + down_by);
    EXPECT_NEAR(gradient, quotient, 2e-5 + 2e-4 * std::fabs(quotient));
    ++checked;
  };
  std::vector<float> gradient(static_cast<std::size_t>(parameters.width() * parameters.width()));
  for (std::size_t side = 0; side < kMterSides; ++side) {
    const auto s = static_cast<MterSide>(side);
    for (std::int64_t row = 0; row < parameters.rows(s); row += 3) {
      step.shared_gradient(parameters, s, row, gradient.data());
      for (std::int64_t i = 0; i < parameters.columns(s); ++i)
        check(parameters.shared[side].row(row)[i], gradient[i]);
      for (std::int64_t i = parameters.columns(s); i < parameters.width(); ++i)
        EXPECT_EQ(gradient[i], 0.0F);
      for (std::size_t task = 0; task < kMterTasks && GetParam() == MterForm::kSplit; ++task) {
        if (!task_has(task, s)) continue;
        step.own_gradient(parameters, task, s, row, gradient.data());
        for (std::int64_t i = 0; i < parameters.columns(s); i += 2)
          check(parameters.own[task][side].row(row)[i], gradient[i]);
      }
    }
  }
  for (std::size_t task = 0; task < kMterTasks && GetParam() == MterForm::kTucker; ++task) {
    for (std::int64_t layer = 0; layer < parameters.cores[task].rows; ++layer) {
      step.core_gradient(parameters, task, layer, gradient.data());
      for (std::int64_t i = 0; i < parameters.cores[task].width; i += 7) {
        const bool padded = i / parameters.width() >= parameters.columns(kRowSide[task]) ||
                            i % parameters.width() >= parameters.columns(kColumnSide[task]);
        if (padded) {
          EXPECT_EQ(gradient[i], 0.0F);
        } else {
          check(parameters.cores[task].row(layer)[i], gradient[i]);
        }
      }
    }
  }
  EXPECT_GT(checked, 50);
}

TEST_P(MterStepTest, StepsKeepEverythingNonNegativeAndLowerTheLoss) {
  MterParameters parameters = started(GetParam());
  const PairDraws draws(data_.by_user, reviews_.names.items.size());
  MterStep step(settings_, tensors_, draws, data_.counts(), 1);
  ExecutionContext context;
  step.gradients(context, parameters, 0);
  const std::vector<ItemPair> pairs(step.pairs().pairs().begin(), step.pairs().pairs().end());
  const double before = objective(parameters, pairs);
  const auto non_negative = [](const FactorMatrix& matrix) {
    return std::all_of(matrix.values.begin(), matrix.values.end(), [](float v) { return v >= 0.0F; });
  };
  for (std::uint32_t iteration = 0; iteration < 100; ++iteration) {
    step.gradients(context, parameters, iteration);
    step.update(context, parameters);
    for (const FactorMatrix& matrix : parameters.shared) ASSERT_TRUE(non_negative(matrix));
    for (const auto& task : parameters.own) {
      for (const FactorMatrix& matrix : task) ASSERT_TRUE(non_negative(matrix));
    }
    for (const FactorMatrix& core : parameters.cores) ASSERT_TRUE(non_negative(core));
  }
  EXPECT_LT(objective(parameters, pairs), 0.8 * before);
}

TEST_P(MterStepTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  std::vector<MterParameters> trained;
  for (const int threads : {1, 2, 4}) {
    FactorSettings settings = settings_;
    settings.batch = 37;
    const PairDraws draws(data_.by_user, reviews_.names.items.size());
    MterStep step(settings, tensors_, draws, data_.counts(), 1);
    ExecutionContext context(threads);
    trained.push_back(started(GetParam()));
    for (std::uint32_t iteration = 0; iteration < 20; ++iteration) {
      step.gradients(context, trained.back(), iteration);
      step.update(context, trained.back());
    }
    for (std::size_t side = 0; side < kMterSides; ++side)
      EXPECT_EQ(trained.back().shared[side].values, trained.front().shared[side].values);
    for (std::size_t task = 0; task < kMterTasks; ++task)
      EXPECT_EQ(trained.back().cores[task].values, trained.front().cores[task].values);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, MterStepTest,
                         testing::Values(MterForm::kTucker, MterForm::kShared, MterForm::kSplit));

/// With λ_B = 0 and one tensor, MTER is a non-negative Tucker fit: projected AdaGrad on dense arrays in
/// double, written down from the definition, takes the same steps.
TEST_F(MterStepTest, OneTensorWithoutPairsIsAPlainNonnegativeTuckerFit) {
  settings_.pair_weight = 0.0;
  settings_.factor_penalty = settings_.core_penalty = 0.0;
  MterTensors alone = tensors_;
  alone.user_phrases = alone.item_phrases = {};
  MterParameters parameters = started(MterForm::kTucker);
  const std::int64_t width = parameters.width();
  // The plain fit's own arrays.
  const std::array<std::int64_t, 3> columns = {5, 4, 3};
  const std::array<MterSide, 3> sides = {MterSide::kUser, MterSide::kItem, MterSide::kFeature};
  std::array<std::vector<double>, 3> factors;
  for (std::size_t s = 0; s < 3; ++s) {
    for (std::int64_t row = 0; row < parameters.rows(sides[s]); ++row) {
      for (std::int64_t i = 0; i < columns[s]; ++i)
        factors[s].push_back(parameters.shared[static_cast<std::size_t>(sides[s])].row(row)[i]);
    }
  }
  std::vector<double> core(5 * 4 * 3);
  const auto at = [](std::int64_t r, std::int64_t t, std::int64_t v) { return (r * 4 + t) * 3 + v; };
  for (std::int64_t r = 0; r < 5; ++r)
    for (std::int64_t t = 0; t < 4; ++t)
      for (std::int64_t v = 0; v < 3; ++v) core[at(r, t, v)] = parameters.cores[0].row(v)[r * width + t];
  std::array<std::vector<double>, 3> squares;
  for (std::size_t s = 0; s < 3; ++s) squares[s].assign(factors[s].size(), 0.0);
  std::vector<double> core_squares(core.size(), 0.0);

  const PairDraws draws(data_.by_user, reviews_.names.items.size());
  MterStep step(settings_, alone, draws, data_.counts(), 1);
  ExecutionContext context;
  const SparseTensor& x = alone.preferences;
  for (std::uint32_t iteration = 0; iteration < 15; ++iteration) {
    step.gradients(context, parameters, iteration);
    step.update(context, parameters);
    std::array<std::vector<double>, 3> slopes;
    for (std::size_t s = 0; s < 3; ++s) slopes[s].assign(factors[s].size(), 0.0);
    std::vector<double> core_slopes(core.size(), 0.0);
    for (std::int64_t e = 0; e < x.size(); ++e) {
      const double* const u = &factors[0][x.row[e] * 5];
      const double* const i = &factors[1][x.column[e] * 4];
      const double* const f = &factors[2][x.feature[e] * 3];
      double sum = 0.0;
      for (int r = 0; r < 5; ++r)
        for (int t = 0; t < 4; ++t)
          for (int v = 0; v < 3; ++v) sum += core[at(r, t, v)] * u[r] * i[t] * f[v];
      const double slope = 2.0 * (sum - x.value[e]) / static_cast<double>(x.size());
      for (int r = 0; r < 5; ++r) {
        for (int t = 0; t < 4; ++t) {
          for (int v = 0; v < 3; ++v) {
            slopes[0][x.row[e] * 5 + r] += slope * core[at(r, t, v)] * i[t] * f[v];
            slopes[1][x.column[e] * 4 + t] += slope * core[at(r, t, v)] * u[r] * f[v];
            slopes[2][x.feature[e] * 3 + v] += slope * core[at(r, t, v)] * u[r] * i[t];
            core_slopes[at(r, t, v)] += slope * u[r] * i[t] * f[v];
          }
        }
      }
    }
    const auto descend = [&](std::vector<double>& theta, std::vector<double>& seen,
                             const std::vector<double>& g, double rate) {
      for (std::size_t k = 0; k < theta.size(); ++k) {
        seen[k] += g[k] * g[k];
        theta[k] = std::max(theta[k] - rate * g[k] / std::sqrt(seen[k] + 1e-12), 0.0);
      }
    };
    for (std::size_t s = 0; s < 3; ++s) descend(factors[s], squares[s], slopes[s], settings_.learning_rate);
    descend(core, core_squares, core_slopes, settings_.core_learning_rate);
  }
  // 15 steps of at most 0.1 amplify the rounding of floats (6e-8 a sum) by far less than 1000.
  for (std::size_t s = 0; s < 3; ++s) {
    for (std::size_t k = 0; k < factors[s].size(); ++k) {
      EXPECT_NEAR(parameters.shared[static_cast<std::size_t>(sides[s])].row(
                      static_cast<std::int64_t>(k) / columns[s])[static_cast<std::int64_t>(k) % columns[s]],
                  factors[s][k], 1e-3);
    }
  }
  for (std::int64_t r = 0; r < 5; ++r)
    for (std::int64_t t = 0; t < 4; ++t)
      for (std::int64_t v = 0; v < 3; ++v)
        EXPECT_NEAR(parameters.cores[0].row(v)[r * width + t], core[at(r, t, v)], 1e-3);
}

TEST(MterTensorsTest, ValuesAreThoseOfTheFormulas) {
  EXPECT_DOUBLE_EQ(preference_value(0.0, 5.0), 3.0);
  EXPECT_NEAR(preference_value(2.0, 5.0), 1.0 + 4.0 / (1.0 + std::exp(-2.0)), 1e-12);
  EXPECT_NEAR(phrase_value(1.0, 5.0), 2.848, 5e-4);
  EXPECT_NEAR(phrase_value(50.0, 5.0), 5.0, 1e-12);
}

TEST(MterTensorsTest, MentionsAddUpByUserItemAndFeature) {
  Reviews reviews;
  for (const char* name : {"u", "v"}) reviews.names.users.intern(name);
  for (const char* name : {"x", "y"}) reviews.names.items.intern(name);
  for (const char* name : {"f", "g"}) reviews.names.features.intern(name);
  for (const char* name : {"p", "q"}) reviews.names.phrases.intern(name);
  const std::vector<Mention> first = {{0, 0, 1}, {0, 1, 1}, {1, 1, -1}};
  const std::vector<Mention> second = {{0, 0, 1}};
  reviews.add(0, 0, 4.0F, first);
  reviews.add(0, 1, 2.0F, second);
  const MterTensors tensors = make_mter_tensors(make_training_data(reviews, {0, 1}));
  const SparseTensor& x = tensors.preferences;
  ASSERT_EQ(x.size(), 5);  // f of x and y, g of x, two ratings
  EXPECT_EQ(x.feature, (std::vector<std::int32_t>{0, 0, 1, 2, 2}));
  EXPECT_NEAR(x.value[0], preference_value(2.0, 5.0), 1e-6);
  EXPECT_NEAR(x.value[2], preference_value(-1.0, 5.0), 1e-6);
  EXPECT_EQ(x.value[4], 2.0F);
  ASSERT_EQ(tensors.user_phrases.size(), 2);  // praise alone: p twice, q once
  EXPECT_NEAR(tensors.user_phrases.value[0], phrase_value(2.0, 5.0), 1e-6);
  EXPECT_EQ(tensors.item_phrases.size(), 3);
}

}  // namespace
}  // namespace olrank
