#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/posterior/full_posterior.h"
#include "models/posterior/posterior.h"
#include "models/posterior/row_covariance.h"
#include "tests/models/posterior/posterior_oracle.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

/// Queries whose features span so many powers of ten, and pairs among their documents.
class RawWorld {
 public:
  RawWorld(const NetworkShape& shape, double decades)
      : shape_(shape), decades_(decades), theta_(random_theta(shape, 7)) {}

  std::vector<float> docs(std::int64_t count, std::uint64_t seed) {
    std::vector<float> features(count * shape_.inputs);
    RngStream draws(test_key(seed), 9);
    for (std::int64_t k = 0; k < shape_.inputs; ++k) {
      const double scale =
          std::pow(10.0, decades_ * static_cast<double>(k) / static_cast<double>(shape_.inputs - 1));
      const double shared = draws.uniform();  // by the query's documents
      for (std::int64_t doc = 0; doc < count; ++doc)
        features[doc * shape_.inputs + k] = static_cast<float>(scale * (shared + draws.uniform()));
    }
    return factors_of(shape_, theta_, features);
  }

 private:
  NetworkShape shape_;
  double decades_;
  std::vector<float> theta_;
};

constexpr std::int64_t kDocsOfQuery = 12;

/// Returns the pairs of round 0, 1, …: one to four.
std::vector<PreferencePair> pairs_of_round(std::uint64_t round) {
  std::vector<PreferencePair> pairs;
  for (std::int32_t i = 0; i < 1 + static_cast<std::int32_t>(round % 4); ++i)
    pairs.push_back({2 * i, 2 * i + 1});
  return pairs;
}

/// The reference: A = RᵀR by a QR factorisation of the gradients themselves, in long double, so that
/// neither A nor K is ever formed.
class LongCovariance {
 public:
  LongCovariance(const NetworkShape& shape, double lambda, double scale)
      : shape_(shape), scale_(scale), rows_(WideMatrix::Identity(shape.parameters(), shape.parameters())) {
    rows_ *= std::sqrt(static_cast<long double>(lambda));
  }

  void observe(const PosteriorRound& round) {
    const WideMatrix g = slow_gradients(shape_, view_of(shape_, round.factors)).cast<long double>();
    for (const PreferencePair& pair : round.pairs) {
      rows_.conservativeResize(rows_.rows() + 1, Eigen::NoChange);
      rows_.row(rows_.rows() - 1) =
          std::sqrt(static_cast<long double>(scale_)) * (g.row(pair.winner) - g.row(pair.loser));
    }
  }
  void factorise() {
    const Eigen::HouseholderQR<WideMatrix> qr(rows_);
    root_ = qr.matrixQR().topRows(rows_.cols()).triangularView<Eigen::Upper>();
  }
  /// s ‖g‖²_{A⁻¹} of the columns' gradients.
  std::vector<double> width_sq(const WideMatrix& gradients) const {
    const WideMatrix half = root_.transpose().triangularView<Eigen::Lower>().solve(gradients);
    std::vector<double> found(half.cols());
    for (std::int64_t i = 0; i < half.cols(); ++i)
      found[i] = static_cast<double>(static_cast<long double>(scale_) * half.col(i).squaredNorm());
    return found;
  }
  std::vector<double> width_sq_of_pairs(const std::vector<float>& docs) const {
    const WideMatrix g = slow_gradients(shape_, view_of(shape_, docs)).cast<long double>();
    WideMatrix differences(g.cols(), g.rows() * g.rows());
    for (std::int64_t i = 0; i < g.rows(); ++i) {
      for (std::int64_t j = 0; j < g.rows(); ++j)
        differences.col(i * g.rows() + j) = (g.row(i) - g.row(j)).transpose();
    }
    return width_sq(differences);
  }

 private:
  NetworkShape shape_;
  double scale_;
  WideMatrix rows_;
  WideMatrix root_;
};

struct Errors {
  double median = 0.0;
  double worst = 0.0;
};

Errors errors_of(const std::vector<double>& found, const std::vector<double>& expected) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (expected[i] > 0.0) errors.push_back(std::abs(found[i] - expected[i]) / expected[i]);
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back()};
}

/// Rounds of a raw world, the documents that were seen, and the reference that saw the same.
class Trial {
 public:
  Trial(const NetworkShape& shape, double decades, double lambda)
      : shape_(shape), world_(shape, decades), reference_(shape, lambda, 1.0) {}

  /// The documents and pairs of the next round.
  const PosteriorRound& play() {
    const std::uint64_t round = seen_.size();
    seen_.push_back({world_.docs(kDocsOfQuery, 100 + round), pairs_of_round(round + 1)});
    reference_.observe(seen_.back());
    return seen_.back();
  }

  /// Errors of widths(docs) for the observed pairs and for pairs of documents not seen before.
  template <class Widths>
  std::vector<Errors> errors(const Widths& widths) {
    reference_.factorise();
    std::vector<double> found;
    std::vector<double> expected;
    for (const auto& [docs, pairs] : seen_) {
      const std::vector<double> width_sq = widths(docs);
      const std::vector<double> exact = reference_.width_sq_of_pairs(docs);
      for (const PreferencePair& pair : pairs) {
        found.push_back(width_sq[pair.winner * kDocsOfQuery + pair.loser]);
        expected.push_back(exact[pair.winner * kDocsOfQuery + pair.loser]);
      }
    }
    const std::vector<float> docs = world_.docs(kDocsOfQuery, 999);
    return {errors_of(found, expected), errors_of(widths(docs), reference_.width_sq_of_pairs(docs))};
  }

 private:
  NetworkShape shape_;
  RawWorld world_;
  LongCovariance reference_;
  std::vector<PosteriorRound> seen_;
};

PosteriorSpec raw_spec(const NetworkShape& shape, CovarianceForm form, double lambda) {
  PosteriorSpec spec = posterior_spec(shape, form, lambda, 1.0);
  spec.checks.every = 16;
  return spec;
}

auto widths_by(Posterior& posterior, ExecutionContext& context, const NetworkShape& shape) {
  return [&posterior, &context, &shape](const std::vector<float>& docs) {
    const TangentFactors view = view_of(shape, docs);
    std::vector<double> width_sq(view.docs * view.docs);
    posterior.widths(context, view, width_sq);
    return width_sq;
  };
}

// Rounding errors of one size hit every pair by chance, and five observed pairs stand for sixty: within a
// factor of 10 of their median error, from the last digits to no digit at all.
TEST(DriftTest, IsTheErrorOfObservedWidths) {
  const NetworkShape shape = ntk_shape(12, 6, 2);
  ExecutionContext context;
  for (const CovarianceForm form : {CovarianceForm::kDual, CovarianceForm::kPrimal}) {
    for (const double decades : {0.0, 3.0, 5.0, 6.5}) {
      for (const double lambda : {10.0, 0.1}) {
        const ExpectedWarnings warnings;
        PosteriorSpec spec = raw_spec(shape, form, lambda);
        spec.checks.every = 0;
        FullPosterior posterior(spec);
        Trial trial(shape, decades, lambda);
        for (int round = 0; round < 24; ++round) observe(posterior, context, shape, trial.play());
        const double drift = posterior.drift(context);
        const double error = trial.errors(widths_by(posterior, context, shape)).front().median;
        EXPECT_TRUE(drift <= 10.0 * error + 1e-14 && drift >= 0.1 * error)
            << posterior.spec().name() << ", " << decades << " decades, lambda " << lambda << ": " << drift
            << " for " << error;
        EXPECT_EQ(warnings.messages().size(), drift > spec.checks.drift_bound ? 1U : 0U);
      }
    }
  }
}

// QR keeps half of the digits that the normal equations lose: with features up to 10⁸ and λ = 0.1 the
// condition number of A is about 10¹⁸, its root 10⁹, and 10⁹ · 2⁻⁵³ = 10⁻⁷.
TEST(DriftTest, RawFeaturesKeepTheirDigitsInOrthonormalForm) {
  const NetworkShape shape = ntk_shape(12, 6, 2);
  ExecutionContext context;
  for (const CovarianceForm form :
       {CovarianceForm::kDual, CovarianceForm::kPrimal, CovarianceForm::kAuto}) {
    for (const double decades : {7.0, 8.0}) {
      const ExpectedWarnings warnings;
      FullPosterior posterior(raw_spec(shape, form, 0.1));
      Trial trial(shape, decades, 0.1);
      for (int round = 0; round < 50; ++round) {
        observe(posterior, context, shape, trial.play());
        if (round != 20 && round != 49) continue;  // fewer and more pairs than the 78 parameters
        EXPECT_EQ(posterior.spec().name(), "orthonormal");
        for (const Errors& errors : trial.errors(widths_by(posterior, context, shape)))
          EXPECT_TRUE(errors.worst <= 1e-6) << errors.worst << " in round " << round;
        EXPECT_LE(posterior.drift(context), 1e-6);
      }
      EXPECT_EQ(posterior.rebuilds(), 1);
      ASSERT_EQ(warnings.messages().size(), 1U);
      EXPECT_TRUE(contains(warnings.messages().front(), "Normalise the features"));
    }
  }
}

TEST(DriftTest, LinearRankersKeepTheirDigits) {
  const NetworkShape shape = linear_shape(60);
  ExecutionContext context;
  for (const double decades : {0.0, 5.0, 8.0}) {
    const ExpectedWarnings warnings;
    RowCovariance posterior(Covariance::kFull, 60, 0.1);
    Trial trial(shape, decades, 0.1);
    for (int round = 0; round < 22; ++round) {
      const auto& [docs, pairs] = trial.play();
      const Eigen::MatrixXd g = slow_gradients(shape, view_of(shape, docs));
      std::vector<double> rows;
      for (const PreferencePair& pair : pairs) {
        const Eigen::VectorXd row = g.row(pair.winner) - g.row(pair.loser);
        rows.insert(rows.end(), row.begin(), row.end());
      }
      posterior.observe(context, rows, std::ssize(pairs));
    }
    const auto widths = [&](const std::vector<float>& docs) {
      const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> g =
          slow_gradients(shape, view_of(shape, docs));
      std::vector<double> width_sq(kDocsOfQuery * kDocsOfQuery);
      posterior.width_sq(context, {g.data(), static_cast<std::size_t>(g.size())}, kDocsOfQuery, width_sq);
      return width_sq;
    };
    for (const Errors& errors : trial.errors(widths)) {
      EXPECT_TRUE(errors.median <= 1e-4) << decades << " decades: " << errors.median;
    }
    EXPECT_EQ(posterior.is_root(), decades > 7.0) << posterior.drift();
    EXPECT_EQ(warnings.messages().size(), posterior.is_root() ? 1U : 0U);
    if (posterior.is_root()) {
      for (const Errors& errors : trial.errors(widths)) EXPECT_TRUE(errors.worst <= 1e-4) << errors.worst;
    }
  }
}

constexpr std::pair<PosteriorVariant, double> kKinds[] = {
    {{Covariance::kFull, CovarianceForm::kDual}, 0.0},
    {{Covariance::kFull, CovarianceForm::kPrimal}, 0.0},
    {{Covariance::kFull, CovarianceForm::kAuto}, 0.0},
    {{Covariance::kFull, CovarianceForm::kDual}, 8.0},  // orthonormal
    {{Covariance::kDiagonal, CovarianceForm::kAuto}, 0.0},
    {{Covariance::kDiagonalOfInverse, CovarianceForm::kAuto}, 0.0},
};

// The bad pairs come in every round, so also in those whose pairs are due for a check, switch the form or
// change to the orthonormal one.
TEST(DriftTest, PairsThatCannotBeTakenInLeaveNoTrace) {
  const NetworkShape shape = ntk_shape(12, 6, 2);
  for (const auto& [kind, decades] : kKinds) {
    // Gradients of 10³⁰ are within the range of a diagonal, and no digit of others would be left beside
    // them.
    const float huge =
        kind.covariance == Covariance::kDiagonal ? std::numeric_limits<float>::infinity() : 1e30F;
    for (const float bad : {huge, std::numeric_limits<float>::quiet_NaN()}) {
      const ExpectedWarnings warnings;
      ExecutionContext context;
      PosteriorSpec spec = raw_spec(shape, kind.form, 0.1);
      spec.covariance = kind.covariance;
      const auto clean = make_posterior(spec);
      const auto tried = make_posterior(spec);
      RawWorld world(shape, decades);
      for (std::uint64_t round = 0; round < 60; ++round) {
        const PosteriorRound good{world.docs(kDocsOfQuery, 100 + round), pairs_of_round(round)};
        const std::string before = state_of(*tried);
        PosteriorRound wrong = good;
        const NetworkLayer layer = shape.layer(static_cast<std::int64_t>(round) % 2);
        float* row = wrong.factors.data() + (round % 2) * shape.factors();
        row[layer.input + 1] = bad;
        row[layer.delta] = 1.0F;
        EXPECT_THROW(observe(*tried, context, shape, wrong), NumericError);
        ASSERT_TRUE(state_of(*tried) == before) << tried->spec().name() << ", round " << round;
        for (Posterior* posterior : {clean.get(), tried.get()}) observe(*posterior, context, shape, good);
        ASSERT_TRUE(state_of(*tried) == state_of(*clean)) << tried->spec().name() << ", round " << round;
        ASSERT_EQ(widths_by(*tried, context, shape)(good.factors),
                  widths_by(*clean, context, shape)(good.factors));
      }
      if (decades > 0.0) {
        EXPECT_EQ(tried->spec().name(), "orthonormal");
      }
    }
  }
}

TEST(DriftTest, LinearPairsThatCannotBeTakenInLeaveNoTrace) {
  ExecutionContext context;
  for (const Covariance structure :
       {Covariance::kFull, Covariance::kDiagonal, Covariance::kDiagonalOfInverse}) {
    for (const double scale : {1.0, 1e9}) {
      const ExpectedWarnings warnings;
      RowCovariance clean(structure, 8, 0.1);
      RowCovariance tried(structure, 8, 0.1);
      for (std::uint64_t round = 0; round < 400; ++round) {
        std::vector<double> rows = random_doubles(24, round);
        for (std::size_t i = 0; i < rows.size(); i += 3) rows[i] *= scale;
        std::vector<double> bad = rows;
        bad[round % 24] = round % 2 == 0 ? 1e30 : NAN;
        EXPECT_THROW(tried.observe(context, bad, 3), NumericError);
        clean.observe(context, rows, 3);
        tried.observe(context, rows, 3);
        ASSERT_TRUE(state_of(tried) == state_of(clean)) << "round " << round;
      }
    }
  }
}

TEST(DriftTest, OrthonormalFormContinuesToTheSameBits) {
  const NetworkShape shape = ntk_shape(12, 6, 2);
  const ExpectedWarnings warnings;
  RawWorld world(shape, 8.0);
  const PosteriorSpec spec = raw_spec(shape, CovarianceForm::kAuto, 0.1);
  ExecutionContext context;
  ExecutionContext four(4);
  FullPosterior straight(spec);
  FullPosterior threaded(spec);
  auto loaded = make_posterior(spec);
  const auto play = [&](ExecutionContext& by, Posterior& posterior, std::uint64_t round) {
    observe(posterior, by, shape, {world.docs(kDocsOfQuery, 100 + round), pairs_of_round(round)});
  };
  const std::vector<float> asked = world.docs(kDocsOfQuery, 999);
  for (std::uint64_t round = 0; round < 60; ++round) {
    play(context, straight, round);
    play(four, threaded, round);
    play(context, *loaded, round);
    ASSERT_TRUE(state_of(threaded) == state_of(straight)) << "round " << round;
    if (round % 7 != 0) continue;
    const std::string saved = state_of(*loaded);
    const auto frozen = loaded->freeze();
    const auto widths = widths_by(const_cast<Posterior&>(*frozen), context, shape)(asked);
    loaded = make_posterior(spec);
    load_state(*loaded, saved);
    EXPECT_EQ(loaded->bytes(), frozen->bytes());
    EXPECT_EQ(widths_by(*loaded, context, shape)(asked), widths);
  }
  ASSERT_TRUE(state_of(*loaded) == state_of(straight));
  EXPECT_EQ(straight.spec().name(), "orthonormal");
  // A frozen copy does not see later pairs.
  const auto frozen = straight.freeze();
  const auto before = widths_by(const_cast<Posterior&>(*frozen), context, shape)(asked);
  for (std::uint64_t round = 60; round < 70; ++round) play(context, straight, round);
  EXPECT_EQ(widths_by(const_cast<Posterior&>(*frozen), context, shape)(asked), before);
  EXPECT_NE(widths_by(straight, context, shape)(asked), before);
}

}  // namespace
}  // namespace olrank
