#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "core/random/rng_stream.h"
#include "recommend/factors/factor_matrix.h"
#include "recommend/mter/mter_step.h"
#include "recommend/synthetic_reviews.h"
#include "tests/recommend/trees/tree_world.h"

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
  const TrainingData data = training_on_all(reviews);
  const PairDraws draws(data.by_user, 30);
  const auto rating = [&](std::int32_t user, std::int32_t item) {
    return rating_of(data.by_user, user, item).value_or(0.0F);
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
  const std::vector<std::vector<std::int32_t>> wanted = {{1, 5}, {}, {0, 3}, {}, {4}};
  for (std::size_t row = 0; row < wanted.size(); ++row)
    EXPECT_TRUE(std::ranges::equal(index.samples_of(static_cast<std::int64_t>(row)), wanted[row])) << row;
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
  MterParameters started(MterForm form) const {
    MterParameters parameters(form, settings_, data_.counts());
    parameters.start(3, 5.0);
    return parameters;
  }

  MterStep step() const { return {settings_, tensors_, draws_, data_.counts(), 1}; }

  /// Visits the gradient of each row: which matrix has it, the row, its gradient and its step size, and
  /// whether a place of the row is one of its numbers, not padding.
  template <class Visit>
  void visit_gradients(const MterStep& step, const MterParameters& p, const Visit& visit) const {
    using Matrix = std::function<FactorMatrix&(MterParameters&)>;
    std::vector<float> gradient(static_cast<std::size_t>(p.width() * p.width()));
    for (std::size_t side = 0; side < kMterSides; ++side) {
      const auto s = static_cast<MterSide>(side);
      const auto is_number = [&p, s](std::int64_t i) { return i < p.columns(s); };
      for (std::int64_t row = 0; row < p.rows(s); ++row) {
        step.shared_gradient(p, s, row, gradient.data());
        visit(Matrix([side](MterParameters& q) -> FactorMatrix& { return q.shared[side]; }), row, gradient,
              settings_.learning_rate, is_number);
        for (std::size_t task = 0; task < kMterTasks && p.form == MterForm::kSplit; ++task) {
          if (!task_has(task, s)) continue;
          step.own_gradient(p, task, s, row, gradient.data());
          visit(Matrix([=](MterParameters& q) -> FactorMatrix& { return q.own[task][side]; }), row,
                gradient, settings_.learning_rate, is_number);
        }
      }
    }
    for (std::size_t task = 0; task < kMterTasks && p.form == MterForm::kTucker; ++task) {
      const auto is_number = [&p, task](std::int64_t i) {
        return i / p.width() < p.columns(kRowSide[task]) && i % p.width() < p.columns(kColumnSide[task]);
      };
      for (std::int64_t layer = 0; layer < p.cores[task].rows; ++layer) {
        step.core_gradient(p, task, layer, gradient.data());
        visit(Matrix([task](MterParameters& q) -> FactorMatrix& { return q.cores[task]; }), layer, gradient,
              settings_.core_learning_rate, is_number);
      }
    }
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
      if (tensors[task]->size() == 0) continue;
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

  ExecutionContext context_;
  Reviews reviews_ = make_factor_reviews(
      context_, {.users = 12, .items = 10, .features = 5, .phrases = 4, .reviews = 40, .dimension = 3});
  TrainingData data_ = training_on_all(reviews_);
  FactorSettings settings_ = {.dimension = 5,
                              .user_dimension = 5,
                              .item_dimension = 4,
                              .feature_dimension = 3,
                              .phrase_dimension = 6,
                              .factor_penalty = 0.3,
                              .core_penalty = 0.2,
                              .pair_weight = 1.7,
                              .pairs = 600};
  MterTensors tensors_ = make_mter_tensors(data_);
  PairDraws draws_{data_.by_user, reviews_.names.items.size()};
};

TEST_P(MterStepTest, GradientsOfEveryBlockAreDifferenceQuotients) {
  MterParameters parameters = started(GetParam());
  for (const bool alone : {false, true}) {  // one tensor without pairs
    if (alone) tensors_.user_phrases = tensors_.item_phrases = {};
    if (alone) settings_.pair_weight = 0.0;
    MterStep step = this->step();
    step.gradients(context_, parameters, 0);
    const auto pairs = step.pairs().pairs();
    ASSERT_EQ(step.batch_size(0), tensors_.preferences.size());
    int numbers = 0;
    const auto check = [&](float& value, float gradient) {
      const float kept = value;
      // Central differences in double err by h²/6 times a third derivative of a few units, and the gradient
      // by the rounding of floats.
      value = kept + 1e-3F;
      const double up_by = double{value} - kept;
      const double up = objective(parameters, pairs);
      value = kept - 1e-3F;
      const double quotient = (up - objective(parameters, pairs)) / (up_by + (kept - double{value}));
      value = kept;
      EXPECT_NEAR(gradient, quotient, 2e-5 + 2e-4 * std::fabs(quotient));
    };
    visit_gradients(step, parameters,
                    [&](const auto& matrix, std::int64_t row, std::span<const float> gradient, double,
                        const auto& is_number) {
                      for (std::int64_t i = 0; i < matrix(parameters).width; ++i) {
                        if (!is_number(i)) {
                          EXPECT_EQ(gradient[i], 0.0F);
                        } else if (++numbers % 3 == 0) {
                          check(matrix(parameters).row(row)[i], gradient[i]);
                        }
                      }
                    });
    EXPECT_GT(numbers, 150);
  }
}

/// With the gradients above, they make MTER of one tensor without pairs a plain non-negative fit.
TEST_P(MterStepTest, UpdatesAreProjectedStepsOfAdagradOnTheGradients) {
  MterParameters parameters = started(GetParam());
  MterStep step = this->step();
  for (std::uint32_t iteration = 0; iteration < 4; ++iteration) {
    step.gradients(context_, parameters, iteration);
    MterParameters before = parameters;
    step.update(context_, parameters);
    visit_gradients(
        step, before,
        [&](const auto& matrix, std::int64_t row, std::span<const float> gradient, double rate,
            const auto&) {
          const FactorMatrix& old = matrix(before);
          for (std::int64_t i = 0; i < old.width; ++i) {
            const double square = old.squares[row * old.width + i] + double{gradient[i]} * gradient[i];
            EXPECT_NEAR(matrix(parameters).row(row)[i],
                        std::max(old.row(row)[i] - rate * gradient[i] / std::sqrt(square + 1e-12), 0.0),
                        1e-6);
            EXPECT_FLOAT_EQ(matrix(parameters).squares[row * old.width + i], static_cast<float>(square));
          }
        });
  }
}

TEST_P(MterStepTest, StepsLowerTheLoss) {
  MterParameters parameters = started(GetParam());
  MterStep step = this->step();
  step.gradients(context_, parameters, 0);
  const std::vector<ItemPair> pairs(step.pairs().pairs().begin(), step.pairs().pairs().end());
  const double before = objective(parameters, pairs);
  for (std::uint32_t iteration = 0; iteration < 100; ++iteration) {
    step.gradients(context_, parameters, iteration);
    step.update(context_, parameters);
  }
  EXPECT_LT(objective(parameters, pairs), 0.8 * before);
}

TEST_P(MterStepTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  std::vector<MterParameters> trained;
  settings_.batch = 37;
  for (const int threads : {1, 2, 4}) {
    MterStep step = this->step();
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
