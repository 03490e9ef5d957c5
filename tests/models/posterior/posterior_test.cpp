#include "models/posterior/posterior.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "models/posterior/full_posterior.h"
#include "models/posterior/posterior_plan.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/support/expected_warnings.h"

namespace olrank {
namespace {

// The oracle: A written out and factorised afresh by Eigen, in long double (64 bits of mantissa), so that
// what differs is the posterior's rounding.
using Wide = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

/// Rounds of a made-up trial: documents of a query at parameters that move, and pairs among them.
struct Round {
  std::vector<float> factors;
  std::vector<PreferencePair> pairs;
};

class History {
 public:
  History(const NetworkShape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {
    theta_ = shape.depth > 1 && shape.width % 2 == 0 ? std::vector<float>(shape.parameters())
                                                     : random_theta(shape, seed);
    if (shape.depth > 1 && shape.width % 2 == 0) {
      initialise(shape, Initialisation::kSymmetric, test_key(seed), theta_);
    }
  }

  /// Documents with features in [0, 1], as normalised data have them.
  std::vector<float> docs(std::int64_t count, std::uint64_t seed) {
    std::vector<float> features(count * shape_.inputs);
    RngStream draws(test_key(seed_ + seed), 3);
    for (float& value : features) value = static_cast<float>(draws.uniform());
    std::vector<float> factors(count * shape_.factors());
    tangent_factors(context_, shape_, theta_, matrix_of(features, shape_.inputs), factors);
    return factors;
  }

  Round round(std::int64_t pairs) {
    ++rounds_;
    const std::vector<float> step = random_numbers(shape_.parameters(), seed_ + 1000 + rounds_, 0.02);
    for (std::size_t k = 0; k < theta_.size(); ++k) theta_[k] += step[k];
    Round round{docs(20, 5000 + rounds_), {}};
    RngStream draws(test_key(seed_), static_cast<std::uint32_t>(rounds_));
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const auto winner = static_cast<std::int32_t>(draws.index(20));
      const auto loser = static_cast<std::int32_t>((winner + 1 + draws.index(19)) % 20);
      round.pairs.push_back({winner, loser});
    }
    return round;
  }

 private:
  NetworkShape shape_;
  std::uint64_t seed_;
  std::uint64_t rounds_ = 0;
  ExecutionContext context_;
  std::vector<float> theta_;
};

class Oracle {
 public:
  Oracle(const NetworkShape& shape, double lambda, double scale)
      : shape_(shape),
        lambda_(lambda),
        scale_(scale),
        a_(Wide::Identity(shape.parameters(), shape.parameters()) * static_cast<long double>(lambda)) {}

  Oracle(const NetworkShape& shape, double lambda, double scale, Wide a)
      : shape_(shape), lambda_(lambda), scale_(scale), a_(std::move(a)) {}

  void observe(const Round& round) {
    const Eigen::MatrixXd g = slow_gradients(shape_, view_of(shape_, round.factors));
    Wide rows(round.pairs.size(), shape_.parameters());
    for (std::size_t s = 0; s < round.pairs.size(); ++s) {
      rows.row(static_cast<std::int64_t>(s)) = (g.row(round.pairs[s].winner).cast<long double>() -
                                                g.row(round.pairs[s].loser).cast<long double>());
    }
    a_.noalias() += static_cast<long double>(scale_) * rows.transpose() * rows;
  }

  const Wide& a() const { return a_; }

  Eigen::MatrixXd width_sq(const std::vector<float>& docs) const {
    const Wide g = slow_gradients(shape_, view_of(shape_, docs)).cast<long double>();
    const Eigen::LLT<Wide> factor(a_);
    const Wide half = factor.matrixL().solve(g.transpose());
    return of_differences(half);
  }
  Eigen::MatrixXd width_sq(const std::vector<float>& docs, const Wide& inverse_diagonal) const {
    const Wide g = slow_gradients(shape_, view_of(shape_, docs)).cast<long double>();
    const Wide half = inverse_diagonal.cwiseSqrt().asDiagonal() * g.transpose();
    return of_differences(half);
  }
  double log_det() const {
    const Eigen::LLT<Wide> factor(a_);
    const Wide l = factor.matrixL();
    long double sum =
        -static_cast<long double>(shape_.parameters()) * std::log(static_cast<long double>(lambda_));
    for (std::int64_t k = 0; k < l.rows(); ++k) sum += 2.0L * std::log(l(k, k));
    return static_cast<double>(sum);
  }

 private:
  /// s ‖h_i − h_j‖² from the difference itself, which loses no digits.
  Eigen::MatrixXd of_differences(const Wide& half) const {
    Eigen::MatrixXd result(half.cols(), half.cols());
    for (std::int64_t i = 0; i < half.cols(); ++i) {
      for (std::int64_t j = 0; j < half.cols(); ++j) {
        result(i, j) = static_cast<double>(static_cast<long double>(scale_) *
                                           (half.col(i) - half.col(j)).squaredNorm());
      }
    }
    return result;
  }

  NetworkShape shape_;
  double lambda_;
  double scale_;
  Wide a_;
};

double largest_relative_error(const std::vector<double>& actual, const Eigen::MatrixXd& expected) {
  double worst = 0.0;
  for (std::int64_t i = 0; i < expected.rows(); ++i) {
    for (std::int64_t j = 0; j < expected.cols(); ++j) {
      const double value = actual[i * expected.cols() + j];
      const double error = i == j ? std::abs(value) : std::abs(value - expected(i, j)) / expected(i, j);
      if (!(error <= worst)) worst = error;  // keeps a NaN
    }
  }
  return worst;
}

std::vector<double> widths_of(Posterior& posterior, ExecutionContext& context, const NetworkShape& shape,
                              const std::vector<float>& docs) {
  const TangentFactors view = view_of(shape, docs);
  std::vector<double> width_sq(view.docs * view.docs, -1.0);
  posterior.width_sq(context, view, width_sq);
  return width_sq;
}

PosteriorSpec spec_of(const NetworkShape& shape, CovarianceForm form, double lambda, double scale) {
  PosteriorSpec spec;
  spec.shape = shape;
  spec.form = form;
  spec.lambda = lambda;
  spec.scale = scale;
  return spec;
}

// Both forms subtract from a covariance of size 1/λ what has been learnt, so the digits that go are those
// of μ/λ, μ the largest eigenvalue of the data term: about 1e4 here. 2e-16 · 1e4/λ is 2e-10 at λ = 0.01 and
// 2e-8 at λ = 1e-4; the brief's bounds of 1e-9 and 1e-6 leave room for the growth of rounding with n.
TEST(PosteriorTest, FormsMatchAFreshFactorisation) {
  const NetworkShape shape = ntk_shape(20, 28, 2);  // p = 588
  for (const double lambda : {1.0, 0.01, 1e-4}) {
    const double bound = lambda < 0.01 ? 1e-6 : 1e-9;
    const double scale = 1.0 / 28.0;
    ExecutionContext context(2);
    History history(shape, 31);
    Oracle oracle(shape, lambda, scale);
    const auto dual = make_posterior(spec_of(shape, CovarianceForm::kDual, lambda, scale));
    const auto ranking = make_posterior(spec_of(shape, CovarianceForm::kDual, lambda, scale));
    const auto primal = make_posterior(spec_of(shape, CovarianceForm::kPrimal, lambda, scale));
    const auto chosen = make_posterior(spec_of(shape, CovarianceForm::kAuto, lambda, scale));
    const std::vector<Posterior*> all = {dual.get(), ranking.get(), primal.get(), chosen.get()};
    std::int64_t observed = 0;
    std::uint64_t number = 0;
    for (const std::int64_t goal : {0, 3, 130, 600, 2000}) {
      while (observed < goal) {
        const Round round = history.round(std::min<std::int64_t>(goal - observed, 1 + observed / 8));
        observed += std::ssize(round.pairs);
        oracle.observe(round);
        // Pairs of the documents of the latest widths take another path.
        widths_of(*ranking, context, shape, round.factors);
        for (Posterior* posterior : all) {
          posterior->observe(context, view_of(shape, round.factors), round.pairs);
        }
      }
      const std::vector<float> docs = history.docs(40, 100 + ++number);
      const Eigen::MatrixXd expected = oracle.width_sq(docs);
      const double log_det = oracle.log_det();
      for (Posterior* posterior : all) {
        EXPECT_EQ(posterior->pairs(), observed);
        const double error = largest_relative_error(widths_of(*posterior, context, shape, docs), expected);
        EXPECT_TRUE(error <= bound) << posterior->form() << ", " << observed << " pairs, lambda " << lambda
                                    << ": " << error;
        EXPECT_TRUE(std::abs(posterior->log_det() - log_det) <= bound * (1.0 + std::abs(log_det)))
            << posterior->form() << ", " << observed << " pairs: " << posterior->log_det() << " for "
            << log_det;
        const double drift = posterior->drift(context);
        EXPECT_TRUE(drift <= 1e-5) << posterior->form() << ", " << observed << " pairs: " << drift;
      }
    }
    EXPECT_EQ(dual->form(), "dual");
    EXPECT_EQ(primal->form(), "primal");
  }
}

// One row of weights: PairRank's ranker, where g(x) = x.
TEST(PosteriorTest, CoversLinearRankersAndBiases) {
  for (const NetworkShape& shape : {linear_shape(46), standard_shape(5, 9, 3), ntk_shape(4, 6, 4)}) {
    ExecutionContext context;
    History history(shape, 41);
    Oracle oracle(shape, 0.1, 1.0);
    const auto dual = make_posterior(spec_of(shape, CovarianceForm::kDual, 0.1, 1.0));
    const auto primal = make_posterior(spec_of(shape, CovarianceForm::kPrimal, 0.1, 1.0));
    for (int round = 0; round < 30; ++round) {
      const Round made = history.round(1 + round % 5);
      oracle.observe(made);
      dual->observe(context, view_of(shape, made.factors), made.pairs);
      primal->observe(context, view_of(shape, made.factors), made.pairs);
      const std::vector<float> docs = history.docs(9, 300);
      const Eigen::MatrixXd expected = oracle.width_sq(docs);
      // Incremental against afresh at every step; the bound as derived above.
      EXPECT_TRUE(largest_relative_error(widths_of(*dual, context, shape, docs), expected) <= 1e-9);
      EXPECT_TRUE(largest_relative_error(widths_of(*primal, context, shape, docs), expected) <= 1e-9);
    }
  }
}

TEST(PosteriorTest, DiagonalsMatchTheirFormulas) {
  for (const NetworkShape& shape : {ntk_shape(12, 14, 2), standard_shape(6, 9, 3), linear_shape(30)}) {
    for (const double lambda : {1.0, 1e-4}) {
      ExecutionContext context(2);
      History history(shape, 51);
      Oracle oracle(shape, lambda, 0.25);
      PosteriorSpec spec = spec_of(shape, CovarianceForm::kAuto, lambda, 0.25);
      spec.covariance = Covariance::kDiagonal;
      const auto diagonal = make_posterior(spec);
      spec.covariance = Covariance::kDiagonalOfInverse;
      const auto of_inverse = make_posterior(spec);
      EXPECT_EQ(diagonal->form(), "diagonal");
      EXPECT_EQ(of_inverse->form(), "diagonal-of-inverse");
      for (int round = 0; round < 40; ++round) {
        const Round made = history.round(5);
        oracle.observe(made);
        diagonal->observe(context, view_of(shape, made.factors), made.pairs);
        of_inverse->observe(context, view_of(shape, made.factors), made.pairs);
        if (round % 20 != 19) continue;
        const std::vector<float> docs = history.docs(33, 400);
        const Wide diagonal_inverse = oracle.a().diagonal().cwiseInverse();
        // M_ii + M_jj − 2 M_ij loses what two documents share, up to six of double's sixteen digits here.
        const double error = largest_relative_error(widths_of(*diagonal, context, shape, docs),
                                                    oracle.width_sq(docs, diagonal_inverse));
        EXPECT_TRUE(error <= 1e-9) << error;
        const Wide inverse_diagonal =
            oracle.a().llt().solve(Wide::Identity(shape.parameters(), shape.parameters())).diagonal();
        // A⁻¹'s diagonal by updates: as the full form.
        EXPECT_TRUE(largest_relative_error(widths_of(*of_inverse, context, shape, docs),
                                           oracle.width_sq(docs, inverse_diagonal)) <= 1e-9);
        double log_det = 0.0;
        for (std::int64_t k = 0; k < shape.parameters(); ++k) {
          log_det += std::log(static_cast<double>(oracle.a()(k, k)) / lambda);
        }
        EXPECT_NEAR(diagonal->log_det(), log_det, 1e-9 * log_det);
      }
    }
  }
}

/// The block of parameter k of θ: its layer and unit.
std::pair<std::int64_t, std::int64_t> block_of(const NetworkShape& shape, std::int64_t k) {
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    if (k >= layer.weight && k < layer.weight + layer.rows * layer.columns)
      return {l, (k - layer.weight) / layer.columns};
    if (layer.has_bias() && k >= layer.bias && k < layer.bias + layer.rows) return {l, k - layer.bias};
  }
  return {-1, -1};
}

/// A as a structure of blocks knows it: what it does not know counts as known for certain.
Wide in_blocks(const NetworkShape& shape, Covariance structure, Wide a) {
  for (std::int64_t k = 0; k < a.rows(); ++k) {
    for (std::int64_t l = 0; l < a.cols(); ++l) {
      if (block_of(shape, k) != block_of(shape, l)) a(k, l) = 0.0L;
    }
    if (structure == Covariance::kLastLayer && block_of(shape, k).first < shape.depth - 1) a(k, k) = 1e60L;
  }
  return a;
}

TEST(PosteriorTest, BlocksMatchTheirFormulas) {
  for (const NetworkShape& shape : {ntk_shape(12, 14, 2), standard_shape(6, 9, 3), linear_shape(30)}) {
    for (const Covariance structure : {Covariance::kUnitBlocks, Covariance::kLastLayer}) {
      for (const double lambda : {1.0, 1e-4}) {
        ExecutionContext context(2);
        History history(shape, 53);
        Oracle oracle(shape, lambda, 0.25);
        PosteriorSpec spec = spec_of(shape, CovarianceForm::kAuto, lambda, 0.25);
        spec.covariance = structure;
        const auto blocks = make_posterior(spec);
        EXPECT_EQ(blocks->form(), name_of(structure));
        const std::int64_t bytes = blocks->bytes();
        for (int round = 0; round < 40; ++round) {
          const Round made = history.round(5);
          oracle.observe(made);
          blocks->observe(context, view_of(shape, made.factors), made.pairs);
          if (round % 20 != 19) continue;
          const std::vector<float> docs = history.docs(33, 400);
          const Oracle known(shape, lambda, 0.25, in_blocks(shape, structure, oracle.a()));
          const double error =
              largest_relative_error(widths_of(*blocks, context, shape, docs), known.width_sq(docs));
          EXPECT_TRUE(error <= 1e-10) << error;
          double log_det = known.log_det();
          for (std::int64_t k = 0; k < shape.parameters(); ++k) {
            if (known.a()(k, k) >= 1e60L)
              log_det -= std::log(static_cast<double>(known.a()(k, k)) / lambda);
          }
          EXPECT_NEAR(blocks->log_det(), log_det, 1e-8);
          // Rounding of the roots next to the root of A's condition, up to 10⁸.
          EXPECT_TRUE(blocks->drift(context) <= 1e-11) << blocks->drift(context);
        }
        EXPECT_EQ(blocks->pairs(), 200);
        EXPECT_EQ(blocks->bytes(), bytes);
      }
    }
  }
}

// One unit has one block: all of A.
TEST(PosteriorTest, BlocksOfLinearRankersAreTheFullCovariance) {
  const NetworkShape shape = linear_shape(20);
  ExecutionContext context;
  History history(shape, 54);
  PosteriorSpec spec = spec_of(shape, CovarianceForm::kDual, 0.1, 1.0);
  const auto full = make_posterior(spec);
  spec.covariance = Covariance::kUnitBlocks;
  const auto blocks = make_posterior(spec);
  const Round made = history.round(40);
  for (Posterior* posterior : {full.get(), blocks.get()})
    posterior->observe(context, view_of(shape, made.factors), made.pairs);
  EXPECT_NEAR(blocks->log_det(), full->log_det(), 1e-9 * full->log_det());
  const std::vector<double> expected = widths_of(*full, context, shape, made.factors);
  const std::vector<double> found = widths_of(*blocks, context, shape, made.factors);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9 * expected[i]);
}

TEST(PosteriorTest, BlocksNeedTheirMemory) {
  PosteriorSpec spec = spec_of(ntk_shape(100, 20, 2), CovarianceForm::kAuto, 1.0, 1.0);
  spec.covariance = Covariance::kUnitBlocks;
  spec.memory = 3'000'000;
  try {
    make_posterior(spec);
    FAIL() << "took more memory than it may";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "The unit-blocks covariance of 2020 parameters needs 3.3 MB of memory, and 3.0 MB may be used: "
        "choose the last-layer or the diagonal covariance or a smaller network.");
  }
  spec.covariance = Covariance::kLastLayer;
  EXPECT_NO_THROW(make_posterior(spec));
}

TEST(PosteriorTest, WidthsAreZeroWithoutACovariance) {
  const NetworkShape shape = ntk_shape(4, 4, 2);
  ExecutionContext context;
  History history(shape, 61);
  PosteriorSpec spec = spec_of(shape, CovarianceForm::kAuto, 1.0, 1.0);
  spec.covariance = Covariance::kNone;
  const auto none = make_posterior(spec);
  const Round round = history.round(3);
  none->observe(context, view_of(shape, round.factors), round.pairs);
  EXPECT_EQ(none->pairs(), 3);
  EXPECT_EQ(widths_of(*none, context, shape, round.factors), std::vector<double>(400, 0.0));
}

/// Two dozen rounds with widths, in which `auto` switches from pairs to parameters.
std::vector<std::vector<double>> trajectory(Posterior& posterior, ExecutionContext& context,
                                            const NetworkShape& shape, int first, int last) {
  History history(shape, 71);
  std::vector<std::vector<double>> widths;
  for (int round = 0; round < last; ++round) {
    const Round made = history.round(6);
    if (round < first) continue;
    widths.push_back(widths_of(posterior, context, shape, made.factors));
    posterior.observe(context, view_of(shape, made.factors), made.pairs);
    widths.push_back({posterior.log_det(), posterior.drift(context)});
  }
  return widths;
}

struct Variant {
  Covariance covariance;
  CovarianceForm form;
};

constexpr Variant kVariants[] = {{Covariance::kFull, CovarianceForm::kDual},
                                 {Covariance::kFull, CovarianceForm::kPrimal},
                                 {Covariance::kFull, CovarianceForm::kAuto},
                                 {Covariance::kDiagonal, CovarianceForm::kAuto},
                                 {Covariance::kDiagonalOfInverse, CovarianceForm::kAuto},
                                 {Covariance::kUnitBlocks, CovarianceForm::kAuto},
                                 {Covariance::kLastLayer, CovarianceForm::kAuto},
                                 {Covariance::kNone, CovarianceForm::kAuto}};

PosteriorSpec spec_of(const NetworkShape& shape, const Variant& variant) {
  PosteriorSpec spec = spec_of(shape, variant.form, 0.1, 0.1);
  spec.covariance = variant.covariance;
  spec.checks.every = 40;
  return spec;
}

TEST(PosteriorTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const NetworkShape shape = ntk_shape(12, 10, 3);
  for (const Variant& variant : kVariants) {
    std::vector<std::vector<std::vector<double>>> results;
    for (const int threads : {1, 2, 4}) {
      ExecutionContext context(threads);
      const auto posterior = make_posterior(spec_of(shape, variant));
      results.push_back(trajectory(*posterior, context, shape, 0, 60));
    }
    EXPECT_EQ(results[1], results[0]);
    EXPECT_EQ(results[2], results[0]);
  }
}

TEST(PosteriorTest, ContinuesToTheSameBitsAfterLoading) {
  const NetworkShape shape = ntk_shape(12, 10, 3);
  for (const Variant& variant : kVariants) {
    for (const int stop : {0, 7, 30}) {
      ExecutionContext context;
      const auto whole = make_posterior(spec_of(shape, variant));
      trajectory(*whole, context, shape, 0, stop);
      StateWriter state;
      whole->save(state);
      const auto loaded = make_posterior(spec_of(shape, variant));
      StateReader reader(state.bytes(), "state");
      loaded->load(reader);
      reader.require_end();
      EXPECT_EQ(loaded->pairs(), whole->pairs());
      EXPECT_EQ(loaded->bytes(), whole->bytes()) << "curves report them";
      EXPECT_EQ(trajectory(*loaded, context, shape, stop, stop + 10),
                trajectory(*whole, context, shape, stop, stop + 10));
      StateWriter again;
      whole->save(again);
      StateWriter of_loaded;
      loaded->save(of_loaded);
      EXPECT_TRUE(again.bytes() == of_loaded.bytes());
      EXPECT_EQ(loaded->bytes(), whole->bytes());
    }
  }
}

// A root that is wrong by a thousandth in one entry of one block.
TEST(PosteriorTest, DriftOfBlocksSeesASpoiltRoot) {
  const NetworkShape shape = ntk_shape(12, 10, 3);
  const PosteriorSpec spec = spec_of(shape, {Covariance::kUnitBlocks, CovarianceForm::kAuto});
  ExecutionContext context;
  const auto sound = make_posterior(spec);
  trajectory(*sound, context, shape, 0, 10);
  EXPECT_TRUE(sound->drift(context) <= 1e-12);
  StateWriter state;
  sound->save(state);
  StateReader entries(state.bytes(), "state");
  StateWriter spoilt;
  spoilt.put("blocks_pairs", entries.get_one<std::int64_t>("blocks_pairs"));
  spoilt.put("blocks_log_det", entries.get_one<double>("blocks_log_det"));
  spoilt.put("blocks_unchecked", entries.get_one<std::int64_t>("blocks_unchecked"));
  std::vector<double> roots = entries.get<double>("blocks_roots");
  roots[5 * (12 + 1)] *= 1.001;
  spoilt.put("blocks_roots", roots);
  spoilt.put("blocks_products", entries.get<double>("blocks_products"));
  spoilt.put("blocks_energies", entries.get<double>("blocks_energies"));
  const auto loaded = make_posterior(spec);
  StateReader reader(spoilt.bytes(), "state");
  loaded->load(reader);
  const ExpectedWarnings warnings;
  const double drift = loaded->drift(context);
  EXPECT_TRUE(drift > 1e-5 && drift < 1e-2) << drift;
  EXPECT_EQ(warnings.count("unit-blocks"), drift > spec.checks.drift_bound ? 1 : 0);
}

TEST(PosteriorTest, RefusesStatesOfOtherPosteriors) {
  ExecutionContext context;
  const NetworkShape shape = ntk_shape(12, 10, 3);
  const auto dual = make_posterior(spec_of(shape, kVariants[0]));
  trajectory(*dual, context, shape, 0, 3);
  StateWriter state;
  dual->save(state);
  const auto diagonal_of_inverse = make_posterior(spec_of(shape, kVariants[4]));
  StateReader reader(state.bytes(), "state");
  EXPECT_THROW(diagonal_of_inverse->load(reader), IoError);
  const auto other_shape = make_posterior(spec_of(ntk_shape(11, 10, 3), kVariants[0]));
  StateReader again(state.bytes(), "state");
  EXPECT_THROW(other_shape->load(again), IoError);

  // A history of fewer pairs than the covariance.
  StateReader entries(state.bytes(), "state");
  std::vector<float> history = entries.get<float>("history");
  history.resize(history.size() - static_cast<std::size_t>(2 * shape.factors()));
  StateWriter shorter;
  shorter.put("history", history);
  shorter.put_text("covariance_form", entries.get_text("covariance_form"));
  shorter.put("dual_pairs", entries.get_one<std::int64_t>("dual_pairs"));
  shorter.put("dual_log_det", entries.get_one<double>("dual_log_det"));
  shorter.put("dual_rows", entries.get<double>("dual_rows"));
  const auto same_shape = make_posterior(spec_of(shape, kVariants[0]));
  StateReader of_shorter(shorter.bytes(), "state");
  try {
    same_shape->load(of_shorter);
    FAIL() << "took a history that is not the covariance's";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("The covariance has 18 pairs and the history has 17."),
              std::string::npos)
        << error.what();
  }
}

/// The number of pairs from which the primal form is cheaper.
std::int64_t primal_pays_from(const NetworkShape& shape, std::int64_t docs) {
  std::int64_t pairs = 1;
  while (dual_operations(shape, pairs, docs, 4) < primal_operations(shape, 0, docs, 4)) ++pairs;
  return pairs;
}

TEST(PosteriorTest, AutoSwitchesToPrimalWhenItPays) {
  const NetworkShape shape = linear_shape(40);
  ExecutionContext context;
  Oracle oracle(shape, 0.1, 1.0);
  History history(shape, 81);
  const auto posterior = make_posterior(spec_of(shape, CovarianceForm::kAuto, 0.1, 1.0));
  std::int64_t switched_at = 0;
  for (int round = 0; round < 200; ++round) {
    const Round made = history.round(2);
    oracle.observe(made);
    const auto widths = widths_of(*posterior, context, shape, made.factors);
    posterior->observe(context, view_of(shape, made.factors), made.pairs);
    if (switched_at == 0 && posterior->form() == "primal") switched_at = posterior->pairs();
  }
  EXPECT_GE(switched_at, primal_pays_from(shape, 20));
  EXPECT_LT(switched_at, 200);
  const std::vector<float> docs = history.docs(20, 500);
  EXPECT_TRUE(largest_relative_error(widths_of(*posterior, context, shape, docs), oracle.width_sq(docs)) <=
              1e-9);
  EXPECT_NEAR(posterior->log_det(), oracle.log_det(), 1e-9 * oracle.log_det());
  // Without the memory for the primal form it stays dual.
  PosteriorSpec small = spec_of(shape, CovarianceForm::kAuto, 0.1, 1.0);
  small.memory = 20000;
  EXPECT_EQ(make_posterior(small)->form(), "dual");
}

TEST(PosteriorTest, RefusesCovariancesThatDoNotFit) {
  PosteriorSpec spec = spec_of(ntk_shape(136, 100, 2), CovarianceForm::kPrimal, 1.0, 0.01);
  spec.memory = 1'000'000'000;
  try {
    make_posterior(spec);
    FAIL() << "took 2 GB of 1";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(
        error.what(),
        "The inverse covariance of 13700 parameters needs 2.3 GB of memory with its factor, and 1.0 GB may "
        "be used: choose the dual form or a smaller network.");
  }
  spec.form = CovarianceForm::kDual;
  EXPECT_EQ(make_posterior(spec)->form(), "dual");
  spec.lambda = 0.0;
  EXPECT_THROW(make_posterior(spec), InvalidArgument);
  // When the history outgrows the memory, observe() throws and leaves the posterior unchanged.
  const NetworkShape shape = ntk_shape(12, 10, 3);
  spec = spec_of(shape, CovarianceForm::kAuto, 1.0, 1.0);
  spec.memory = 40'000;  // of rows that are as wide as their block
  ExecutionContext context;
  History history(shape, 91);
  const auto posterior = make_posterior(spec);
  std::int64_t pairs = 0;
  EXPECT_THROW(
      for (int round = 0; round < 100; ++round) {
        const Round made = history.round(6);
        pairs = posterior->pairs();
        posterior->observe(context, view_of(shape, made.factors), made.pairs);
      },
      Error);
  EXPECT_GT(pairs, 0);
  EXPECT_EQ(posterior->pairs(), pairs);
}

// With so small a λ the observed pairs use up the precision of 1/λ, and there is no memory for the form
// that keeps more digits.
TEST(PosteriorTest, ThrowsWhenPrecisionIsLost) {
  const NetworkShape shape = ntk_shape(12, 30, 2);
  const ExpectedWarnings warnings;
  ExecutionContext context;
  History history(shape, 95);
  PosteriorSpec spec = spec_of(shape, CovarianceForm::kDual, 1e-15, 1.0);
  spec.checks.every = 4;
  spec.memory = static_cast<std::int64_t>(dual_bytes({.shape = shape, .pairs = 12}).all());
  FullPosterior posterior(spec);
  std::int64_t pairs = 0;
  try {
    while (posterior.pairs() < 60) {
      pairs = posterior.pairs();
      const Round made = history.round(4);
      posterior.observe(context, view_of(shape, made.factors), made.pairs);
    }
    FAIL() << "continued with a drift of " << posterior.drift(context);
  } catch (const NumericError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 23), "The dual covariance of ") << error.what();
  }
  EXPECT_EQ(posterior.pairs(), pairs);
  EXPECT_EQ(posterior.form(), "dual");
  spec.memory = 0;
  FullPosterior roomy(spec);
  while (roomy.pairs() < 60) {
    const Round made = history.round(4);
    roomy.observe(context, view_of(shape, made.factors), made.pairs);
  }
  EXPECT_EQ(roomy.form(), "orthonormal");
  EXPECT_GT(roomy.rebuilds(), 0);
}

// A checkpoint with one wrong number makes the factor wrong: the check finds it, the history repairs it.
TEST(PosteriorTest, RebuildsADriftingFactor) {
  const ExpectedWarnings warnings;
  const NetworkShape shape = ntk_shape(12, 10, 2);
  ExecutionContext context;
  History history(shape, 99);
  PosteriorSpec spec = spec_of(shape, CovarianceForm::kDual, 0.1, 0.1);
  spec.checks.every = 64;
  FullPosterior sound(spec);
  Oracle oracle(shape, 0.1, 0.1);
  const auto observe = [&](Posterior& posterior, const Round& made) {
    posterior.observe(context, view_of(shape, made.factors), made.pairs);
  };
  for (int round = 0; round < 10; ++round) {
    const Round made = history.round(5);
    observe(sound, made);
    oracle.observe(made);
  }
  StateWriter state;
  sound.save(state);
  StateReader reader(state.bytes(), "state");
  StateWriter damaged;
  damaged.put("history", reader.get<float>("history"));
  damaged.put_text("covariance_form", reader.get_text("covariance_form"));
  damaged.put("dual_pairs", reader.get_one<std::int64_t>("dual_pairs"));
  damaged.put("dual_log_det", reader.get_one<double>("dual_log_det"));
  std::vector<double> block = reader.get<double>("dual_rows");
  block[20 * 128 + 3] += 0.01 * block[20 * 128 + 20];
  damaged.put("dual_rows", block);
  damaged.put("covariance_excess", reader.get_one<double>("covariance_excess"));
  damaged.put("covariance_unchecked", reader.get_one<std::int64_t>("covariance_unchecked"));
  damaged.put("covariance_negative_widths", reader.get_one<std::int64_t>("covariance_negative_widths"));
  damaged.put("covariance_rebuilds", reader.get_one<std::int64_t>("covariance_rebuilds"));

  FullPosterior posterior(spec);
  StateReader damaged_reader(damaged.bytes(), "state");
  posterior.load(damaged_reader);
  EXPECT_GT(posterior.drift(context), spec.checks.drift_bound);
  const std::vector<float> docs = history.docs(20, 700);
  EXPECT_GT(largest_relative_error(widths_of(posterior, context, shape, docs), oracle.width_sq(docs)),
            1e-6);
  EXPECT_EQ(posterior.rebuilds(), 0);
  for (int round = 0; round < 3; ++round) {
    const Round made = history.round(5);
    observe(posterior, made);
    oracle.observe(made);
  }
  EXPECT_EQ(posterior.rebuilds(), 1);
  EXPECT_LE(posterior.drift(context), 1e-9);
  EXPECT_LE(largest_relative_error(widths_of(posterior, context, shape, docs), oracle.width_sq(docs)),
            1e-9);
  EXPECT_NEAR(posterior.log_det(), oracle.log_det(), 1e-9 * oracle.log_det());
}

// Equal documents have the same gradient: their width is rounding of either sign, set to 0 or tiny.
TEST(PosteriorTest, WidthOfEqualDocumentsIsZero) {
  const NetworkShape shape = ntk_shape(12, 10, 2);
  ExecutionContext context;
  History history(shape, 97);
  const auto posterior = make_posterior(spec_of(shape, CovarianceForm::kDual, 0.01, 0.1));
  for (int round = 0; round < 40; ++round) {
    const Round made = history.round(4);
    posterior->observe(context, view_of(shape, made.factors), made.pairs);
  }
  std::vector<float> docs = history.docs(10, 600);
  std::copy_n(docs.begin(), shape.factors(), docs.begin() + 7 * shape.factors());
  const std::vector<double> width_sq = widths_of(*posterior, context, shape, docs);
  EXPECT_GE(width_sq[7], 0.0);
  EXPECT_LE(width_sq[7], 1e-10 * width_sq[1]);
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t j = 0; j < 10; ++j) EXPECT_EQ(width_sq[i * 10 + j], width_sq[j * 10 + i]);
  }
}

TEST(PosteriorPlanTest, DualPaysUntilAboutTheNumberOfParameters) {
  // n²V against p²V: the two meet where n is a little below p, as tangent kernels cost something too.
  const NetworkShape shape = ntk_shape(136, 100, 2);
  const std::int64_t pairs = primal_pays_from(shape, 120);
  EXPECT_GT(pairs, shape.parameters() / 2);
  EXPECT_LT(pairs, 2 * shape.parameters());
  EXPECT_LT(dual_operations(shape, pairs - 1, 120, 4), primal_operations(shape, 0, 120, 4));
  EXPECT_GE(dual_operations(shape, pairs, 120, 4), primal_operations(shape, 0, 120, 4));
}

}  // namespace
}  // namespace olrank
