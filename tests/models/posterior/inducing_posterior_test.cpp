#include "models/posterior/inducing_posterior.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/posterior/posterior.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/models/posterior/posterior_oracle.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

using Wide = WideMatrix;
using Round = PosteriorRound;

constexpr std::int64_t kDocs = 14;

PosteriorSpec spec_of(const NetworkShape& shape, std::int64_t budget, double lambda = 1.0) {
  PosteriorSpec spec = posterior_spec(shape, CovarianceForm::kAuto, lambda, 0.1);
  spec.covariance = Covariance::kInducing;
  spec.budget = budget;
  return spec;
}

/// Gradients written out, and the definition: every observed gradient's part in the span of the
/// dictionary's.
class SlowInducing {
 public:
  explicit SlowInducing(const PosteriorSpec& spec) : spec_(spec), gradients_(0, spec.shape.parameters()) {}

  void observe(const Round& round) {
    const Eigen::MatrixXd g = slow_gradients(spec_.shape, view_of(spec_.shape, round.factors));
    for (const PreferencePair& pair : round.pairs) {
      gradients_.conservativeResize(gradients_.rows() + 1, Eigen::NoChange);
      gradients_.row(gradients_.rows() - 1) = (g.row(pair.winner) - g.row(pair.loser)).cast<long double>() *
                                              std::sqrt(static_cast<long double>(spec_.scale));
    }
  }

  /// The dictionary's pairs by number, then w² and log det.
  void use(std::span<const std::int64_t> numbers) {
    Wide z(std::ssize(numbers), gradients_.cols());
    for (std::int64_t i = 0; i < std::ssize(numbers); ++i) z.row(i) = gradients_.row(numbers[i]);
    const Eigen::HouseholderQR<Wide> qr(z.transpose());
    basis_ = qr.householderQ() * Wide::Identity(z.cols(), z.rows());
    const Wide coordinates = gradients_ * basis_;
    b_ = coordinates.transpose() * coordinates;
    b_.diagonal().array() += static_cast<long double>(spec_.lambda);
  }
  Eigen::MatrixXd width_sq(const std::vector<float>& docs) const {
    const Wide g = slow_gradients(spec_.shape, view_of(spec_.shape, docs)).cast<long double>() *
                   std::sqrt(static_cast<long double>(spec_.scale));
    const Eigen::LLT<Wide> factor(b_);
    Eigen::MatrixXd result(g.rows(), g.rows());
    for (std::int64_t i = 0; i < g.rows(); ++i) {
      for (std::int64_t j = 0; j < g.rows(); ++j) {
        const Wide difference = (g.row(i) - g.row(j)).transpose();
        const Wide inside = basis_.transpose() * difference;
        const Wide outside = difference - basis_ * inside;
        result(i, j) = static_cast<double>(outside.squaredNorm() / static_cast<long double>(spec_.lambda) +
                                           factor.matrixL().solve(inside).squaredNorm());
      }
    }
    return result;
  }
  double log_det() const { return wide_log_det(b_, spec_.lambda); }

 private:
  PosteriorSpec spec_;
  Wide gradients_;
  Wide basis_;
  Wide b_;
};

std::unique_ptr<Posterior> exact(PosteriorSpec spec) {
  spec.covariance = Covariance::kFull;
  spec.form = CovarianceForm::kDual;
  return make_posterior(spec);
}

void observe_both(Posterior& posterior, Posterior& other, ExecutionContext& context, const Round& round) {
  for (Posterior* each : {&posterior, &other}) observe(*each, context, each->spec().shape, round);
}

/// The widths of documents are those of an exact posterior.
void expect_widths_of(Posterior& exact, Posterior& posterior, ExecutionContext& context,
                      const std::vector<float>& docs, double bound) {
  const TangentShape& shape = posterior.spec().shape;
  const std::vector<double> widths = posterior_widths(exact, context, shape, docs);
  const std::int64_t count = view_of(shape, docs).docs;
  const Eigen::Map<const Eigen::MatrixXd> expected(widths.data(), count, count);
  const double error = largest_relative_error(posterior_widths(posterior, context, shape, docs), expected);
  EXPECT_TRUE(error <= bound) << posterior.pairs() << " pairs: " << error;
}

// Digits go where C is ill conditioned, in proportion to it: 2e-16 times at most 1e4 here.
TEST(InducingPosteriorTest, IsExactWhileEveryPairIsInTheDictionary) {
  for (const double lambda : {10.0, 0.1}) {
    const NetworkShape shape = standard_shape(20, 16, 2);
    const PosteriorSpec spec = spec_of(shape, 320, lambda);
    ExecutionContext context(2);
    PosteriorRounds rounds(shape, 31, kDocs, 0.01);
    InducingPosterior posterior(spec);
    const auto full = exact(spec);
    std::int64_t number = 0;
    while (posterior.pairs() < 320) {
      observe_both(posterior, *full, context, rounds.round(1 + number++ % 7));
      if (number % 8 != 0 && posterior.pairs() < 300) continue;
      expect_widths_of(*full, posterior, context, rounds.docs(9, 100 + number), 1e-9);
      EXPECT_NEAR(posterior.log_det(), full->log_det(), 1e-9 * (1.0 + full->log_det()));
      EXPECT_TRUE(posterior.drift(context) <= 1e-9) << posterior.drift(context);
      // A few pairs of a round are sums of others.
      EXPECT_GE(posterior.members(), std::min<std::int64_t>(posterior.pairs(), 320) * 9 / 10);
    }
  }
}

TEST(InducingPosteriorTest, ProjectsEveryPairOnTheDictionary) {
  const NetworkShape shape = ntk_shape(14, 12, 3);
  const PosteriorSpec spec = spec_of(shape, 60);
  ExecutionContext context;
  PosteriorRounds rounds(shape, 41, kDocs, 0.01);
  InducingPosterior posterior(spec);
  SlowInducing slow(spec);
  std::vector<std::int64_t> before;
  int changes = 0;
  // 240 pairs stay in the window of two budgets and its slack, so that all are projected exactly.
  for (int number = 0; posterior.pairs() < 240; ++number) {
    const Round round = rounds.round(1 + number % 5);
    slow.observe(round);
    observe(posterior, context, shape, round);
    if (posterior.pairs() <= 60 || number % 6 != 0) continue;
    ASSERT_EQ(posterior.members(), 60);
    if (!std::equal(before.begin(), before.end(), posterior.numbers().begin())) ++changes;
    before.assign(posterior.numbers().begin(), posterior.numbers().end());
    slow.use(posterior.numbers());
    const std::vector<float> docs = rounds.docs(9, 100 + number);
    const double error =
        largest_relative_error(posterior_widths(posterior, context, shape, docs), slow.width_sq(docs));
    EXPECT_TRUE(error <= 1e-9) << posterior.pairs() << " pairs: " << error;
    EXPECT_NEAR(posterior.log_det(), slow.log_det(), 1e-9 * (1.0 + slow.log_det()));
    EXPECT_TRUE(posterior.drift(context) <= 1e-9) << posterior.drift(context);
  }
  EXPECT_GE(changes, 3);
  // A uniform sample of all pairs, whose mean number is 120 with a standard error of 8.
  double mean = 0.0;
  for (const std::int64_t pair : posterior.numbers()) mean += static_cast<double>(pair) / 60.0;
  EXPECT_NEAR(mean, 120.0, 32.0);
}

// No direction is lost that the dictionary spans, so a dictionary of the whole space stays exact after the
// factors of most pairs are gone; and with fewer than `budget` distinct pairs all others have no rank.
TEST(InducingPosteriorTest, StaysExactWhereTheDictionarySpansEverything) {
  const NetworkShape small = ntk_shape(3, 4, 2);  // p = 16
  const PosteriorSpec spec = spec_of(small, 40);
  ExecutionContext context;
  PosteriorRounds rounds(small, 51, kDocs, 0.01);
  InducingPosterior posterior(spec);
  const auto full = exact(spec);
  for (int number = 0; number < 160; ++number) {
    observe_both(posterior, *full, context, rounds.round(4));
    if (number % 20 != 19) continue;
    expect_widths_of(*full, posterior, context, rounds.docs(9, 100 + number), 1e-7);
  }
  EXPECT_LE(posterior.members(), 16);
}

TEST(InducingPosteriorTest, TakesRepeatedPairs) {
  const NetworkShape shape = standard_shape(10, 8, 2);
  const PosteriorSpec spec = spec_of(shape, 30);
  ExecutionContext context;
  PosteriorRounds rounds(shape, 61, kDocs, 0.01);
  std::vector<Round> some;
  for (int number = 0; number < 5; ++number) some.push_back(rounds.round(4));
  InducingPosterior posterior(spec);
  const auto full = exact(spec);
  for (int number = 0; number < 100; ++number) observe_both(posterior, *full, context, some[number % 5]);
  EXPECT_LE(posterior.members(), 20);
  expect_widths_of(*full, posterior, context, rounds.docs(9, 200), 1e-9);
  EXPECT_EQ(posterior.negative_widths(), 0);
}

TEST(InducingPosteriorTest, StaysNearExactWidthsInFlatMemory) {
  const NetworkShape shape = ntk_shape(20, 16, 2);
  const PosteriorSpec spec = spec_of(shape, 200, 10.0);
  ExecutionContext context(2);
  PosteriorRounds rounds(shape, 71, kDocs, 0.01);
  InducingPosterior posterior(spec);
  const auto full = exact(spec);
  std::int64_t most_bytes = 0;
  for (int number = 0; posterior.pairs() < 3000; ++number) {
    observe_both(posterior, *full, context, rounds.round(10));
    if (posterior.pairs() == 1000) most_bytes = posterior.bytes();
    if (posterior.pairs() > 1000) {
      EXPECT_LE(posterior.bytes(), most_bytes * 11 / 10);
    }
  }
  const std::vector<float> docs = rounds.docs(20, 300);
  const std::vector<double> own = posterior_widths(posterior, context, shape, docs);
  const std::vector<double> expected = posterior_widths(*full, context, shape, docs);
  std::vector<double> ratios;
  for (std::size_t k = 0; k < own.size(); ++k) {
    if (expected[k] > 0.0) ratios.push_back(std::sqrt(own[k] / expected[k]));
  }
  std::sort(ratios.begin(), ratios.end());
  EXPECT_GE(ratios[ratios.size() / 10], 0.98);
  EXPECT_LE(ratios[ratios.size() * 9 / 10], 1.4);
  EXPECT_LE(posterior.log_det(), full->log_det());
  EXPECT_TRUE(posterior.drift(context) <= 1e-8) << posterior.drift(context);
}

// Through choices of a full dictionary, and what leaves its window.
TEST(InducingPosteriorTest, TakesTheMemoryThatIsPlanned) {
  const NetworkShape shape = ntk_shape(20, 16, 2);
  for (const std::int64_t budget : {100, 384}) {
    PosteriorRounds rounds(shape, 71, kDocs, 0.01);
    std::vector<Round> made;
    for (std::int64_t pairs = 0; pairs < 4 * budget; pairs += 10) made.push_back(rounds.round(10));
    const std::int64_t before = allocated_bytes();
    restart_most_allocated_bytes();
    ExecutionContext context;
    InducingPosterior posterior(spec_of(shape, budget));
    for (const Round& round : made) {
      posterior_widths(posterior, context, shape, round.factors);
      observe(posterior, context, shape, round);
    }
    const auto taken = static_cast<double>(most_allocated_bytes() - before);
    const PosteriorLoad load{.shape = shape, .pairs = posterior.pairs(), .docs = kDocs, .added = 10};
    const double planned = inducing_bytes(load, budget).all();
    EXPECT_LE(taken, planned) << budget;
    EXPECT_GE(taken, 0.5 * planned) << budget;
  }
}

TEST(InducingPosteriorTest, RefusesStatesThatDoNotFit) {
  const NetworkShape shape = ntk_shape(12, 10, 3);
  ExecutionContext context;
  InducingPosterior posterior(spec_of(shape, 50));
  trajectory(posterior, context, shape, 0, 30);
  const std::string state = state_of(posterior);
  const std::unique_ptr<Posterior> others[] = {make_posterior(spec_of(shape, 20)),
                                               exact(spec_of(shape, 50)),
                                               make_posterior(spec_of(ntk_shape(11, 10, 3), 50))};
  for (const auto& other : others) EXPECT_THROW(load_state(*other, state), IoError);
}

TEST(InducingPosteriorTest, ObservingPairsThatAreRefusedChangesNothing) {
  const NetworkShape shape = ntk_shape(12, 10, 3);
  ExecutionContext context;
  InducingPosterior posterior(spec_of(shape, 50));
  trajectory(posterior, context, shape, 0, 30);
  const std::string before = state_of(posterior);
  PosteriorRounds rounds(shape, 99, kDocs, 0.01);
  Round bad = rounds.round(5);
  bad.factors[3] = 1e30F;
  EXPECT_THROW(observe(posterior, context, shape, bad), NumericError);
  EXPECT_TRUE(state_of(posterior) == before);

  PosteriorSpec tight = spec_of(shape, 50);
  tight.memory = 1000;
  InducingPosterior small(tight);
  EXPECT_THROW(observe(small, context, shape, rounds.round(5)), Error);
  EXPECT_EQ(small.pairs(), 0);
}

// The check after many pairs fails, whatever a rebuild brings: when they have entered the dictionary and R,
// some have replaced others, and the window has lost its oldest.
TEST(InducingPosteriorTest, ObservingThatFailsAtItsEndChangesNothing) {
  const NetworkShape shape = ntk_shape(12, 10, 3);
  ExecutionContext context;
  for (const std::int64_t observed : {20, 60}) {
    PosteriorSpec spec = spec_of(shape, 300);
    spec.checks.every = 64;
    spec.checks.drift_bound = -1.0;
    InducingPosterior posterior(spec);
    InducingPosterior other(spec);
    PosteriorRounds rounds(shape, 99, kDocs, 0.01);
    observe_both(posterior, other, context, rounds.round(observed));
    const std::string before = state_of(posterior);
    for (const std::int64_t added : {64, 700}) {
      const ExpectedWarnings warnings;
      EXPECT_THROW(observe(posterior, context, shape, rounds.round(added)), NumericError);
      EXPECT_LE(warnings.count("has lost digits"), 1);
      EXPECT_TRUE(state_of(posterior) == before) << observed << " " << added;
    }
    // Into the rows that the failed ones had.
    for (const std::int64_t added : {1, 2}) {
      const Round next = rounds.round(added);
      observe_both(posterior, other, context, next);
      EXPECT_EQ(posterior_widths(posterior, context, shape, next.factors),
                posterior_widths(other, context, shape, next.factors));
      EXPECT_TRUE(state_of(posterior) == state_of(other));
    }
  }
}

/// Documents whose gradients, of the output layer alone, are h_0, h_0 + δ h_1, h_1 + δ h_2 and h_2 + δ h_3
/// for rows h of a Hadamard matrix, and one whose gradient is 0. Each but the first lies in the span of
/// those before it up to δ, which is more than the least share of a DictionaryPolicy. So all enter a
/// dictionary, whose kernel has an eigenvalue of δ⁶: less than a double's rounding. A policy that is
/// stricter leaves out the second one, without which the others are nearly orthogonal.
struct NearDependentPairs : PosteriorRound {
  static constexpr std::int64_t kPairs = 4;
  static constexpr std::int64_t kDocs = kPairs + 1;
  static constexpr std::int64_t kChains = 8;  // with directions of their own
  static constexpr std::int64_t kWidth = 64;

  static NetworkShape shape() { return ntk_shape(12, kWidth, 2); }

  /// `chain` from 0 to kChains.
  explicit NearDependentPairs(std::int64_t chain) {
    factors.resize(kDocs * shape().factors());
    constexpr float kDelta = 1.0F / 2048.0F;
    const NetworkLayer output = shape().layer(1);
    for (std::int64_t doc = 0; doc < kPairs; ++doc) {
      float* row = factors.data() + doc * shape().factors();
      row[output.delta] = 1.0F;
      const std::int64_t last = kPairs * chain + doc;
      for (std::int64_t k = 0; k < kWidth; ++k)
        row[output.input + k] =
            doc == 0 ? hadamard(last, k) : hadamard(last - 1, k) + kDelta * hadamard(last, k);
      pairs.push_back({static_cast<std::int32_t>(doc), static_cast<std::int32_t>(kPairs)});
    }
  }

 private:
  static float hadamard(std::int64_t row, std::int64_t column) {
    return std::popcount(static_cast<std::uint64_t>(row & column)) % 2 == 0 ? 1.0F : -1.0F;
  }
};

/// Observes pairs that lie nearly in the span of those before them, in eight subspaces.
void observe_near_dependent(Posterior& posterior, ExecutionContext& context) {
  for (std::int64_t chain = 0; chain < NearDependentPairs::kChains; ++chain)
    observe(posterior, context, NearDependentPairs::shape(), NearDependentPairs(chain));
}

// A factor C of a dictionary whose pairs are nearly dependent has no digits. Found by a check of the drift
// or, with λ near nothing, as B cannot be factorised, the dictionary is chosen again without one pair of
// each chain, and with those that had seemed to add nothing. What the other pairs do not span of the one
// that was left out is 6e-8 of it.
TEST(InducingPosteriorTest, ADictionaryThatHasLostItsDigitsIsChosenAgain) {
  const NetworkShape shape = NearDependentPairs::shape();
  ExecutionContext context;
  for (const double lambda : {1.0, 1e-12}) {
    PosteriorSpec spec = spec_of(shape, 400, lambda);
    spec.checks.every = lambda == 1.0 ? 64 : 0;
    spec.checks.drift_bound = 1e-7;
    const ExpectedWarnings warnings;
    InducingPosterior posterior(spec);
    const auto full = exact(spec);
    for (int twice = 0; twice < 2; ++twice) {
      observe_near_dependent(posterior, context);
      observe_near_dependent(*full, context);
    }
    EXPECT_EQ(posterior.rebuilds(), 1) << lambda;
    EXPECT_EQ(posterior.pairs(), 64) << lambda;
    EXPECT_EQ(posterior.members(), 24) << lambda;
    expect_widths_of(*full, posterior, context, PosteriorRounds(shape, 17, kDocs, 0.01).docs(9, 100), 1e-5);
    if (lambda == 1.0) {
      EXPECT_TRUE(posterior.drift(context) <= 1e-12) << posterior.drift(context);
      EXPECT_EQ(warnings.count("has lost digits"), 1);
    }
  }
}

TEST(InducingPosteriorTest, StaysStrictAfterLoading) {
  const NetworkShape shape = NearDependentPairs::shape();
  PosteriorSpec spec = spec_of(shape, 400, 1e-12);
  spec.checks.every = 0;
  ExecutionContext context;
  const ExpectedWarnings warnings;
  InducingPosterior whole(spec);
  for (int twice = 0; twice < 2; ++twice) observe_near_dependent(whole, context);
  ASSERT_EQ(whole.rebuilds(), 1);
  InducingPosterior loaded(spec);
  load_state(loaded, state_of(whole));
  EXPECT_EQ(loaded.rebuilds(), 1);
  for (InducingPosterior* posterior : {&whole, &loaded}) {
    observe_near_dependent(*posterior, context);
    EXPECT_EQ(posterior->members(), 24) << "what was left out must not enter again";
    trajectory(*posterior, context, shape, 0, 5);
  }
  EXPECT_EQ(whole.rebuilds(), 1);
  EXPECT_TRUE(state_of(loaded) == state_of(whole));
}

}  // namespace
}  // namespace olrank
