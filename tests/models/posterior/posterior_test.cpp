#include "models/posterior/posterior.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/posterior/full_posterior.h"
#include "tests/models/posterior/posterior_oracle.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

// Both forms subtract from a covariance of size 1/λ what has been learnt, so the digits that go are those
// of μ/λ, μ the largest eigenvalue of the data term: about 1e4 here. 2e-16 · 1e4/λ is 2e-10 at λ = 0.01 and
// 2e-8 at λ = 1e-4; the bounds of 1e-9 and 1e-6 leave room for the growth of rounding with n.
TEST(PosteriorTest, FormsMatchAFreshFactorisation) {
  // One row of weights: PairRank's ranker, where g(x) = x.
  for (const auto& [shape, lambda] : {std::pair{ntk_shape(20, 28, 2), 1.0},
                                      {ntk_shape(20, 28, 2), 0.01},
                                      {ntk_shape(20, 28, 2), 1e-4},
                                      {linear_shape(46), 0.1},
                                      {standard_shape(5, 9, 3), 0.1},
                                      {ntk_shape(4, 6, 4), 0.1}}) {
    const double bound = lambda < 0.01 ? 1e-6 : 1e-9;
    const double scale = 1.0 / 28.0;
    ExecutionContext context(2);
    PosteriorRounds history(shape, 31);
    PosteriorOracle oracle(shape, lambda, scale);
    const auto dual = make_posterior(posterior_spec(shape, CovarianceForm::kDual, lambda, scale));
    const auto ranking = make_posterior(posterior_spec(shape, CovarianceForm::kDual, lambda, scale));
    const auto primal = make_posterior(posterior_spec(shape, CovarianceForm::kPrimal, lambda, scale));
    const auto chosen = make_posterior(posterior_spec(shape, CovarianceForm::kAuto, lambda, scale));
    EXPECT_EQ(chosen->spec().name(), "dual");
    const std::vector<Posterior*> all = {dual.get(), ranking.get(), primal.get(), chosen.get()};
    std::int64_t observed = 0;
    std::uint64_t number = 0;
    for (const std::int64_t goal : {0, 3, 130, 600, 2000}) {
      while (observed < goal) {
        const PosteriorRound round =
            history.round(std::min<std::int64_t>(goal - observed, 1 + observed / 8));
        observed += std::ssize(round.pairs);
        oracle.observe(round);
        // Pairs of the documents of the latest widths take another path.
        posterior_widths(*ranking, context, shape, round.factors);
        for (Posterior* posterior : all) observe(*posterior, context, shape, round);
      }
      const std::vector<float> docs = history.docs(40, 100 + ++number);
      const Eigen::MatrixXd expected = oracle.width_sq(docs);
      const double log_det = oracle.log_det();
      for (Posterior* posterior : all) {
        EXPECT_EQ(posterior->pairs(), observed);
        const double error =
            largest_relative_error(posterior_widths(*posterior, context, shape, docs), expected);
        EXPECT_TRUE(error <= bound) << posterior->spec().name() << ", " << observed << " pairs, lambda "
                                    << lambda << ": " << error;
        EXPECT_TRUE(std::abs(posterior->log_det() - log_det) <= bound * (1.0 + std::abs(log_det)))
            << posterior->spec().name() << ", " << observed << " pairs: " << posterior->log_det() << " for "
            << log_det;
        const double drift = posterior->drift(context);
        EXPECT_TRUE(drift <= 1e-5) << posterior->spec().name() << ", " << observed << " pairs: " << drift;
      }
    }
    EXPECT_EQ(dual->spec().name(), "dual");
    EXPECT_EQ(primal->spec().name(), "primal");
    // It pays by then where there are few parameters.
    EXPECT_EQ(chosen->spec().name(), shape.parameters() < 200 ? "primal" : "dual");
  }
}

TEST(PosteriorTest, WidthsAreZeroWithoutACovariance) {
  const NetworkShape shape = ntk_shape(4, 4, 2);
  ExecutionContext context;
  PosteriorRounds history(shape, 61);
  PosteriorSpec spec = posterior_spec(shape, CovarianceForm::kAuto, 1.0, 1.0);
  spec.covariance = Covariance::kNone;
  const auto none = make_posterior(spec);
  const PosteriorRound round = history.round(3);
  observe(*none, context, shape, round);
  EXPECT_EQ(none->pairs(), 3);
  EXPECT_EQ(posterior_widths(*none, context, shape, round.factors), std::vector<double>(400, 0.0));
}

TEST(PosteriorTest, RefusesStatesOfOtherPosteriors) {
  ExecutionContext context;
  const NetworkShape shape = ntk_shape(12, 10, 3);
  const auto dual = make_posterior(posterior_spec(shape, kPosteriorVariants[0]));
  trajectory(*dual, context, shape, 0, 3);
  const std::string state = state_of(*dual);
  const auto diagonal_of_inverse = make_posterior(posterior_spec(shape, kPosteriorVariants[4]));
  EXPECT_THROW(load_state(*diagonal_of_inverse, state), IoError);
  const auto other_shape = make_posterior(posterior_spec(ntk_shape(11, 10, 3), kPosteriorVariants[0]));
  EXPECT_THROW(load_state(*other_shape, state), IoError);

  // A history of fewer pairs than the covariance.
  StateReader entries(state, "state");
  std::vector<float> history = entries.get<float>("history");
  history.resize(history.size() - static_cast<std::size_t>(2 * shape.factors()));
  StateWriter shorter;
  shorter.put("history", history);
  shorter.put_text("covariance_form", entries.get_text("covariance_form"));
  shorter.put("dual_pairs", entries.get_one<std::int64_t>("dual_pairs"));
  shorter.put("dual_log_det", entries.get_one<double>("dual_log_det"));
  shorter.put("dual_rows", entries.get<double>("dual_rows"));
  const auto same_shape = make_posterior(posterior_spec(shape, kPosteriorVariants[0]));
  EXPECT_TRUE(contains(message_of<IoError>([&] { load_state(*same_shape, shorter.bytes()); }),
                       "The covariance has 18 pairs and the history has 17."));
}

TEST(PosteriorTest, RefusesCovariancesThatDoNotFit) {
  PosteriorSpec spec = posterior_spec(ntk_shape(136, 100, 2), CovarianceForm::kPrimal, 1.0, 0.01);
  spec.memory = 1'000'000'000;
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { make_posterior(spec); }),
      "The inverse covariance of 13700 parameters needs 2.3 GB of memory with its factor, and 1.0 GB may "
      "be used: choose the dual form or a smaller network.");
  spec.form = CovarianceForm::kDual;
  EXPECT_EQ(make_posterior(spec)->spec().name(), "dual");
  spec.lambda = 0.0;
  EXPECT_THROW(make_posterior(spec), InvalidArgument);
  // When the history outgrows the memory, observe() throws and leaves the posterior unchanged.
  const NetworkShape shape = ntk_shape(12, 10, 3);
  spec = posterior_spec(shape, CovarianceForm::kAuto, 1.0, 1.0);
  spec.memory = 40'000;  // of rows that are as wide as their block
  ExecutionContext context;
  PosteriorRounds history(shape, 91);
  const auto posterior = make_posterior(spec);
  std::int64_t pairs = 0;
  EXPECT_THROW(
      for (int round = 0; round < 100; ++round) {
        pairs = posterior->pairs();
        observe(*posterior, context, shape, history.round(6));
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
  PosteriorRounds history(shape, 95);
  PosteriorSpec spec = posterior_spec(shape, CovarianceForm::kDual, 1e-15, 1.0);
  spec.checks.every = 4;
  spec.memory = static_cast<std::int64_t>(dual_bytes({.shape = shape, .pairs = 12}).all());
  FullPosterior posterior(spec);
  std::int64_t pairs = 0;
  try {
    while (posterior.pairs() < 60) {
      pairs = posterior.pairs();
      observe(posterior, context, shape, history.round(4));
    }
    FAIL() << "continued with a drift of " << posterior.drift(context);
  } catch (const NumericError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 23), "The dual covariance of ") << error.what();
  }
  EXPECT_EQ(posterior.pairs(), pairs);
  EXPECT_EQ(posterior.spec().name(), "dual");
  spec.memory = 0;
  FullPosterior roomy(spec);
  while (roomy.pairs() < 60) observe(roomy, context, shape, history.round(4));
  EXPECT_EQ(roomy.spec().name(), "orthonormal");
  EXPECT_GT(roomy.rebuilds(), 0);
}

// A checkpoint with one wrong number makes the factor wrong: the check finds it, the history repairs it.
TEST(PosteriorTest, RebuildsADriftingFactor) {
  const ExpectedWarnings warnings;
  const NetworkShape shape = ntk_shape(12, 10, 2);
  ExecutionContext context;
  PosteriorRounds history(shape, 99);
  PosteriorSpec spec = posterior_spec(shape, CovarianceForm::kDual, 0.1, 0.1);
  spec.checks.every = 64;
  FullPosterior sound(spec);
  PosteriorOracle oracle(shape, 0.1, 0.1);
  const auto play = [&](Posterior& posterior, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      const PosteriorRound made = history.round(5);
      observe(posterior, context, shape, made);
      oracle.observe(made);
    }
  };
  play(sound, 10);
  StateReader reader(state_of(sound), "state");
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
  load_state(posterior, damaged.bytes());
  EXPECT_GT(posterior.drift(context), spec.checks.drift_bound);
  const std::vector<float> docs = history.docs(20, 700);
  const auto error = [&] {
    return largest_relative_error(posterior_widths(posterior, context, shape, docs), oracle.width_sq(docs));
  };
  EXPECT_GT(error(), 1e-6);
  EXPECT_EQ(posterior.rebuilds(), 0);
  play(posterior, 3);
  EXPECT_EQ(posterior.rebuilds(), 1);
  EXPECT_LE(posterior.drift(context), 1e-9);
  EXPECT_LE(error(), 1e-9);
  EXPECT_NEAR(posterior.log_det(), oracle.log_det(), 1e-9 * oracle.log_det());
}

// Equal documents have the same gradient: their width is rounding of either sign, set to 0 or tiny.
TEST(PosteriorTest, WidthOfEqualDocumentsIsZero) {
  const NetworkShape shape = ntk_shape(12, 10, 2);
  ExecutionContext context;
  PosteriorRounds history(shape, 97);
  const auto posterior = make_posterior(posterior_spec(shape, CovarianceForm::kDual, 0.01, 0.1));
  for (int round = 0; round < 40; ++round) observe(*posterior, context, shape, history.round(4));
  std::vector<float> docs = history.docs(10, 600);
  std::copy_n(docs.begin(), shape.factors(), docs.begin() + 7 * shape.factors());
  const std::vector<double> width_sq = posterior_widths(*posterior, context, shape, docs);
  EXPECT_GE(width_sq[7], 0.0);
  EXPECT_LE(width_sq[7], 1e-10 * width_sq[1]);
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t j = 0; j < 10; ++j) EXPECT_EQ(width_sq[i * 10 + j], width_sq[j * 10 + i]);
  }
}

TEST(PosteriorTest, DiagonalsMatchTheirFormulas) {
  for (const NetworkShape& shape : {ntk_shape(12, 14, 2), standard_shape(6, 9, 3), linear_shape(30)}) {
    for (const double lambda : {1.0, 1e-4}) {
      ExecutionContext context(2);
      PosteriorRounds history(shape, 51);
      PosteriorOracle oracle(shape, lambda, 0.25);
      PosteriorSpec spec = posterior_spec(shape, CovarianceForm::kAuto, lambda, 0.25);
      spec.covariance = Covariance::kDiagonal;
      const auto diagonal = make_posterior(spec);
      spec.covariance = Covariance::kDiagonalOfInverse;
      const auto of_inverse = make_posterior(spec);
      EXPECT_EQ(diagonal->spec().name(), "diagonal");
      EXPECT_EQ(of_inverse->spec().name(), "diagonal-of-inverse");
      for (int round = 0; round < 40; ++round) {
        const PosteriorRound made = history.round(5);
        oracle.observe(made);
        observe(*diagonal, context, shape, made);
        observe(*of_inverse, context, shape, made);
        if (round % 20 != 19) continue;
        const std::vector<float> docs = history.docs(33, 400);
        const WideMatrix diagonal_inverse = oracle.a().diagonal().cwiseInverse();
        // M_ii + M_jj − 2 M_ij loses what two documents share, up to six of double's sixteen digits here.
        const double error = largest_relative_error(posterior_widths(*diagonal, context, shape, docs),
                                                    oracle.width_sq(docs, diagonal_inverse));
        EXPECT_TRUE(error <= 1e-9) << error;
        const WideMatrix inverse_diagonal =
            oracle.a().llt().solve(WideMatrix::Identity(shape.parameters(), shape.parameters())).diagonal();
        // A⁻¹'s diagonal by updates: as the full form.
        EXPECT_TRUE(largest_relative_error(posterior_widths(*of_inverse, context, shape, docs),
                                           oracle.width_sq(docs, inverse_diagonal)) <= 1e-9);
        double log_det = 0.0;
        for (std::int64_t k = 0; k < shape.parameters(); ++k)
          log_det += std::log(static_cast<double>(oracle.a()(k, k)) / lambda);
        EXPECT_NEAR(diagonal->log_det(), log_det, 1e-9 * log_det);
      }
    }
  }
}

constexpr std::int64_t kDocs = 20;
constexpr std::int64_t kAdded = 3;

NetworkShape shape() {
  return linear_shape(40);
}

/// The pairs after which a policy switches; -1 if it does not within 400 rounds.
std::int64_t switches_at(FormPolicy policy) {
  for (std::int64_t pairs = 0; pairs < 400 * kAdded; pairs += kAdded) {
    if (policy.switches(pairs, kAdded, kDocs)) return pairs + kAdded;
  }
  return -1;
}

TEST(FormPolicyTest, SwitchesOnceTheExcessExceedsTheConversion) {
  double excess = 0.0;
  std::int64_t pairs = 0;
  do {
    const double dual = dual_operations(shape(), pairs, kDocs, 4);
    const double primal = primal_operations(shape(), pairs, kDocs, 4);
    if (dual > primal) excess += dual - primal;
    pairs += kAdded;
  } while (excess <= conversion_operations(shape(), pairs));
  EXPECT_GT(excess, 0.0);
  EXPECT_EQ(switches_at(FormPolicy(shape(), CovarianceForm::kAuto, {})), pairs);
  EXPECT_EQ(switches_at(FormPolicy(shape(), CovarianceForm::kDual, {})), -1);  // a fixed form stays
}

TEST(FormPolicyTest, ExcessIsItsState) {
  FormPolicy policy(shape(), CovarianceForm::kAuto, {});
  policy.set_excess(conversion_operations(shape(), 1000));
  EXPECT_TRUE(policy.switches(kAdded, kAdded, kDocs));
  EXPECT_GE(policy.excess(), conversion_operations(shape(), 1000));
}

// The dual form outgrows the memory before the switch pays; the freed factor makes room for the primal
// form.
TEST(FormPolicyTest, SwitchesEarlyWhenTheDualFormOverflows) {
  struct Case {
    PosteriorHome home;
    NetworkShape network;
    std::int64_t pairs;  // for which the primal form fits
    double beside;       // that others take
  };
  for (const auto& [home, network, most_pairs, beside] :
       {Case{PosteriorHome::kHost, ntk_shape(20, 20, 2), 900, 0.0},
        Case{PosteriorHome::kDevice, ntk_shape(136, 100, 2), 20'000, 1e9}}) {
    const double memory = primal_bytes({network, home, most_pairs, 1, kAdded}).all();
    const FormPolicy::Room room{
        .bytes = static_cast<std::int64_t>(memory + beside), .home = home, .beside = beside};
    FormPolicy policy(network, CovarianceForm::kAuto, room);
    std::int64_t pairs = 0;
    while (!policy.switches(pairs, kAdded, 1)) pairs += kAdded;
    EXPECT_GT(dual_bytes({network, home, pairs + kAdded, 1, kAdded}).all(), memory - 1.0);
    EXPECT_LE(dual_bytes({network, home, pairs, 1, kAdded}).all(), memory);
    EXPECT_LT(policy.excess(), conversion_operations(network, pairs));
    EXPECT_LT(pairs, most_pairs);
  }
}

TEST(FormPolicyTest, NeverSwitchesIntoMemoryThatDoesNotSuffice) {
  // Enough for the dual form all the way, not for the primal form.
  const NetworkShape wide = linear_shape(400);
  FormPolicy policy(wide, CovarianceForm::kAuto,
                    {.bytes = static_cast<std::int64_t>(primal_bytes({wide}).all()) - 1});
  EXPECT_FALSE(policy.primal_fits(0));
  policy.set_excess(2.0 * conversion_operations(wide, 1000));
  EXPECT_FALSE(policy.switches(100, kAdded, kDocs));
}

TEST(FormPolicyTest, ThrowsWhenNoFormFits) {
  for (const CovarianceForm form : {CovarianceForm::kAuto, CovarianceForm::kDual}) {
    FormPolicy policy(linear_shape(1000), form, {.bytes = 100'000});
    EXPECT_EQ(message_of<Error>([&] { policy.switches(1000, kAdded, kDocs); }).substr(0, 40),
              "The dual covariance of 1003 pairs needs ");
  }
}

TEST(PosteriorMemoryTest, DualPaysUntilAboutTheNumberOfParameters) {
  // n²V against p²V: the two meet where n is a little below p, as tangent kernels cost something too.
  const NetworkShape shape = ntk_shape(136, 100, 2);
  std::int64_t pairs = 1;
  while (dual_operations(shape, pairs, 120, 4) < primal_operations(shape, 0, 120, 4)) ++pairs;
  EXPECT_GT(pairs, shape.parameters() / 2);
  EXPECT_LT(pairs, 2 * shape.parameters());
}

}  // namespace
}  // namespace olrank
