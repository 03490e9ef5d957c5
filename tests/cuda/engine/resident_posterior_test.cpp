#include "cuda/engine/resident_posterior.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/engine/watched_posterior.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/inverse_factor.h"
#include "cuda/runtime/address_range.h"
#include "cuda/runtime/work.h"
#include "models/posterior/posterior.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

constexpr std::int64_t kPosteriorDocs = 9;
constexpr std::int64_t kPosteriorRounds = 50;
constexpr std::int64_t kRoundPairs = 3;

using device::ResidentPosterior;

NetworkShape small_shape() {
  return ntk_shape(5, 6, 2);
}

PosteriorSpec exact_spec(Covariance covariance, CovarianceForm form = CovarianceForm::kAuto) {
  PosteriorSpec spec;
  spec.shape = small_shape();
  spec.covariance = covariance;
  spec.form = form;
  spec.lambda = 0.3;
  spec.scale = 0.125;
  return spec;
}

const PosteriorSpec kDual = exact_spec(Covariance::kFull, CovarianceForm::kDual);
const PosteriorSpec kPrimal = exact_spec(Covariance::kFull, CovarianceForm::kPrimal);
const PosteriorSpec kDiagonal = exact_spec(Covariance::kDiagonal);

/// A query and three of its pairs.
class Query {
 public:
  explicit Query(std::uint64_t seed)
      : rows_(on_device(random_factors(small_shape(), kPosteriorDocs, seed))),
        pairs_(on_device(std::vector<PreferencePair>{{0, 1}, {5, 2}, {3, 8}})) {}

  device::FactorRows rows() { return {rows_.data(), kPosteriorDocs, small_shape().factors()}; }
  const PreferencePair* pairs() const { return pairs_.data(); }
  /// The lower triangle.
  std::vector<double> m_by(ResidentPosterior& posterior) {
    posterior.gram(nullptr, rows(), m_.data());
    const std::vector<double> m = m_.to_host();
    std::vector<double> lower;
    for (std::int64_t i = 0; i < kPosteriorDocs; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) lower.push_back(m[i * kPosteriorDocs + j]);
    }
    return lower;
  }
  void observe_in(ResidentPosterior& posterior) {
    posterior.gram(nullptr, rows(), m_.data());
    observe_latest_in(posterior);
  }
  /// After m_by() of the same posterior.
  void observe_latest_in(ResidentPosterior& posterior) {
    posterior.observe(nullptr, rows(), m_.data(), pairs(), kRoundPairs);
  }

 private:
  DeviceArray<float> rows_;
  DeviceArray<PreferencePair> pairs_;
  DeviceArray<double> m_ = unset_on_device<double>(kPosteriorDocs * kPosteriorDocs);
};

class ResidentPosteriorTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped()) on_.emplace();
  }
  void TearDown() override { on_.reset(); }

  std::unique_ptr<ResidentPosterior> made(const PosteriorSpec& spec) {
    return device::make_resident_posterior(spec, on_->products);
  }
  std::unique_ptr<ResidentPosterior> after_rounds(const PosteriorSpec& spec,
                                                  std::int64_t rounds = kPosteriorRounds) {
    auto posterior = made(spec);
    for (std::int64_t round = 0; round < rounds; ++round)
      Query(static_cast<std::uint64_t>(100 + round)).observe_in(*posterior);
    return posterior;
  }
  /// A posterior that has loaded the inverse for another scale.
  std::unique_ptr<ResidentPosterior> with_a_wrong_inverse(const ResidentPosterior& posterior,
                                                          PosteriorSpec spec) {
    spec.scale *= 1.01;
    auto wrong = made(spec);
    StateReader reader(state_of(posterior), "memory");
    wrong->load(nullptr, reader);
    return wrong;
  }

  std::optional<DefaultProducts> on_;
};

/// A posterior's state once all of its work is done.
StateReader read_state(const ResidentPosterior& posterior) {
  device::OwnedStream::wait_for(nullptr);
  return StateReader(state_of(posterior), "memory");
}

/// The larger relative error of w² along a random vector and of an observed pair.
double drift_of(ResidentPosterior& posterior) {
  std::vector<double> probe(small_shape().parameters());
  RngStream(test_key(7), 0).unit_vector(probe);
  const std::vector<double> errors = posterior.errors_of(nullptr, {probe, {3}});
  return std::max(errors.at(0), errors.at(1));
}

/// M and log(det A/det λI) by their obvious formulas, from the factors of winners and losers.
struct SlowPosterior {
  PosteriorSpec spec;
  std::vector<float> history = {};

  std::pair<Eigen::MatrixXd, double> of(const std::vector<float>& factors) const {
    const TangentShape shape(spec.shape);
    const Eigen::MatrixXd g = slow_pair_gradients(shape, view_of(shape, history));
    const Eigen::MatrixXd docs = slow_gradients(shape, view_of(shape, factors));
    const std::int64_t p = shape.parameters();
    if (spec.covariance == Covariance::kDiagonal) {
      const Eigen::ArrayXd growth =
          spec.scale / spec.lambda * g.colwise().squaredNorm().transpose().array();
      const Eigen::VectorXd inverse = 1.0 / (spec.lambda * (1.0 + growth));
      return {spec.scale * docs * inverse.asDiagonal() * docs.transpose(), growth.log1p().sum()};
    }
    const Eigen::LLT<Eigen::MatrixXd> cholesky(spec.lambda * Eigen::MatrixXd::Identity(p, p) +
                                               spec.scale * g.transpose() * g);
    double log_det = -static_cast<double>(p) * std::log(spec.lambda);
    for (std::int64_t k = 0; k < p; ++k) log_det += 2.0 * std::log(cholesky.matrixLLT()(k, k));
    return {spec.scale * docs * cholesky.solve(docs.transpose()), log_det};
  }
};

/// Compares m [docs × docs], of the documents with these factors, in its lower triangle.
void expect_slow_m(const std::vector<double>& found, const SlowPosterior& slow,
                   const std::vector<float>& factors) {
  const TangentShape shape(slow.spec.shape);
  const Eigen::MatrixXd expected = slow.of(factors).first;
  const Eigen::VectorXd lengths = slow_gradients(shape, view_of(shape, factors)).rowwise().norm();
  for (std::int64_t i = 0; i < expected.rows(); ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      // Each form takes differences of numbers as large as without pairs.
      const double scale = slow.spec.scale / slow.spec.lambda * lengths[i] * lengths[j];
      ASSERT_NEAR(found[i * expected.rows() + j], expected(i, j), 1e-12 * scale) << i << " " << j;
      if (slow.spec.name() != "dual") continue;
      // Widths relative to themselves, but for what cancels in M.
      const auto width = [&](const auto& m) { return m(i, i) + m(j, j) - 2.0 * m(i, j); };
      const auto of_found = [&](std::int64_t a, std::int64_t b) { return found[a * expected.rows() + b]; };
      ASSERT_NEAR(width(of_found), width(expected), 1e-9 * width(expected) + 1e-14 * scale);
    }
  }
}

std::vector<NetworkShape> shapes_of(Covariance covariance) {
  if (covariance != Covariance::kDiagonal)
    return {ntk_shape(5, 8, 2), ntk_shape(9, 8, 4), standard_shape(4, 7, 3),
            linear_shape(7),    linear_shape(1),    linear_shape(33)};
  std::vector<NetworkShape> shapes = test_shapes();
  for (const std::int64_t p : {1, 31, 33, 256}) shapes.push_back(linear_shape(p));
  shapes.push_back(ntk_shape(3, 300, 2));
  return shapes;
}

// Appends of none, of one, up to each edge of a row block, over it, and over a whole block.
TEST_P(ResidentPosteriorTest, MatchesTheWholeHistoryInEachRoundAndRebuilt) {
  const std::pair<int, int> rounds[] = {{0, 0},   {0, 1},    {1, 31}, {3, 32}, {9, 33},   {31, 64},
                                        {64, 65}, {19, 130}, {1, 12}, {1, 12}, {1, 12},   {90, 70},
                                        {34, 70}, {1, 12},   {1, 12}, {1, 12}, {113, 70}, {0, 9}};
  for (PosteriorSpec spec : {kDual, kPrimal, kDiagonal}) {
    for (const NetworkShape& shape : shapes_of(spec.covariance)) {
      spec.shape = shape;
      const auto posterior = made(spec);
      SlowPosterior slow{spec};
      std::uint64_t seed = 70;
      for (const auto& [count, docs] : rounds) {
        SCOPED_TRACE(testing::Message() << spec.name() << ", p = " << shape.parameters() << ", "
                                        << posterior->pairs() << " pairs, " << docs << " documents");
        std::vector<float> factors = random_factors(shape, docs, ++seed);
        if (docs > 2)  // a document without a live unit
          std::fill_n(factors.begin() + 2 * shape.factors(), shape.factors(), 0.0F);
        std::vector<PreferencePair> pairs;
        for (int s = 0; s < count; ++s) pairs.push_back({(5 * s + 1) % docs, s % docs});
        const auto rows = on_device(factors);
        DeviceArray<double> m = unset_on_device<double>(docs * docs);
        const device::FactorRows view{rows, docs, shape.factors()};
        posterior->gram(nullptr, view, m);
        posterior->observe(nullptr, view, m, on_device(pairs), count);
        expect_slow_m(m.to_host(), slow, factors);
        for (const PreferencePair& pair : pairs) {
          for (const std::int32_t doc : {pair.winner, pair.loser}) {
            const auto row = part_of(factors, doc * shape.factors(), shape.factors());
            slow.history.insert(slow.history.end(), row.begin(), row.end());
          }
        }
        const auto expect_status = [&] {
          device::CovarianceStatus status;
          device::copy_to_host(posterior->status(), std::span(&status, 1));
          EXPECT_EQ(status.failed, 0);
          EXPECT_NEAR(status.log_det, slow.of(factors).second, 1e-9 * (1.0 + status.log_det));
        };
        expect_status();
        if (count > 0 || docs != 9) continue;
        EXPECT_EQ(posterior->pairs(), 370);
        posterior->rebuild(nullptr);
        posterior->gram(nullptr, view, m);
        expect_slow_m(m.to_host(), slow, factors);
        expect_status();
      }
    }
  }
}

TEST_P(ResidentPosteriorTest, PrimalFormHasTheMOfTheDualForm) {
  Query query(5);
  auto dual = after_rounds(kDual);
  const auto before = query.m_by(*dual);
  const auto primal = device::make_primal_of(std::move(dual), on_->products);
  EXPECT_EQ(primal->spec().name(), "primal");
  EXPECT_EQ(primal->pairs(), kPosteriorRounds * kRoundPairs);
  EXPECT_TRUE(all_near(query.m_by(*primal), before, 1e-11, 1e-9));
  // And after one more round.
  const auto other = after_rounds(kPrimal, kPosteriorRounds);
  Query next(6);
  next.observe_in(*primal);
  next.observe_in(*other);
  EXPECT_TRUE(all_near(query.m_by(*primal), query.m_by(*other), 1e-11, 1e-9));
}

TEST_P(ResidentPosteriorTest, AFreshFactorisationMeasuresTheSameDrift) {
  for (const PosteriorSpec& spec : {kDual, kPrimal}) {
    const auto posterior = after_rounds(spec, 8);
    ASSERT_TRUE(posterior->factorise_afresh(nullptr));
    EXPECT_LT(drift_of(*posterior), 1e-11) << posterior->spec().name();
    posterior->drop_fresh_factor();
    const auto wrong = with_a_wrong_inverse(*posterior, spec);
    const double seen = drift_of(*wrong);
    ASSERT_TRUE(wrong->factorise_afresh(nullptr));
    // Without the fresh factor, the square of the error is lost.
    EXPECT_NEAR(drift_of(*wrong), seen, 0.02 * seen) << posterior->spec().name();
    wrong->drop_fresh_factor();
    EXPECT_EQ(drift_of(*wrong), seen) << posterior->spec().name();
  }
  EXPECT_FALSE(after_rounds(kDual, 0)->factorise_afresh(nullptr)) << "without pairs";
  EXPECT_FALSE(after_rounds(kDiagonal, 2)->factorise_afresh(nullptr));
}

TEST_P(ResidentPosteriorTest, RebuildRepairsAWrongInverse) {
  Query query(5);
  for (const PosteriorSpec& spec : {kDual, kPrimal}) {
    const auto wrong = with_a_wrong_inverse(*after_rounds(spec, 8), spec);
    const auto before = query.m_by(*wrong);
    wrong->rebuild(nullptr);
    EXPECT_LT(drift_of(*wrong), 1e-12) << wrong->spec().name();
    EXPECT_FALSE(all_near(query.m_by(*wrong), before, 1e-11, 1e-9)) << wrong->spec().name();
    query.observe_in(*wrong);
    EXPECT_LT(drift_of(*wrong), 1e-12) << wrong->spec().name();
  }
}

// Evaluations measure at any time, also between a query's widths and its pairs.
TEST_P(ResidentPosteriorTest, MeasuringLeavesTheLatestGramAlone) {
  for (const PosteriorSpec& spec : {kDual, kPrimal}) {
    const auto posterior = after_rounds(spec);
    const auto measured = after_rounds(spec);
    Query query(6);
    query.observe_in(*posterior);
    query.m_by(*measured);
    drift_of(*measured);
    query.observe_latest_in(*measured);
    EXPECT_EQ(query.m_by(*measured), query.m_by(*posterior)) << posterior->spec().name();
  }
}

constexpr std::int64_t kBlockRows = InverseFactor::kBlock;

// With no tail, in the first block, on its edge and in the next block.
TEST_P(ResidentPosteriorTest, ResumesWithTheSameBitsWhateverTheTailHolds) {
  for (const std::int64_t rounds : {0, 20, 42, 43, 60}) {
    const auto posterior = after_rounds(kDual, rounds);
    const auto resumed = made(kDual);
    StateReader reader = read_state(*posterior);
    resumed->load(nullptr, reader);
    reader.require_end();
    for (std::uint64_t round = 0; round < 30; ++round) {
      Query(300 + round).observe_in(*posterior);
      Query(300 + round).observe_in(*resumed);
    }
    Query query(5);
    EXPECT_EQ(query.m_by(*resumed), query.m_by(*posterior)) << rounds;
    device::OwnedStream::wait_for(nullptr);
    EXPECT_TRUE(state_of(*resumed) == state_of(*posterior)) << rounds;
  }
}

// Earlier versions saved rows of L⁻¹ alone, or the lower triangle of A⁻¹ with all pairs, and zeros above
// it: what is there of them is computed again from the pairs.
TEST_P(ResidentPosteriorTest, ContinuesFromAStateWithoutATail) {
  for (const PosteriorSpec& spec : {kDual, kPrimal}) {
    const std::int64_t p = small_shape().parameters();
    const auto posterior = after_rounds(spec);
    StateReader reader = read_state(*posterior);
    StateWriter earlier;
    earlier.put("device.pairs", reader.get<float>("device.pairs"));
    if (spec.form == CovarianceForm::kDual) {
      earlier.put("device.factor", std::vector<double>(device::factor_numbers(2 * kBlockRows)));
    } else {
      earlier.put("device.inverse", std::vector<double>(static_cast<std::size_t>(p * p)));
    }
    reader.skip_to("device.log_det");
    earlier.put("device.log_det", reader.get_one<double>("device.log_det"));
    const auto resumed = made(spec);
    StateReader of_earlier(earlier.bytes(), "memory");
    resumed->load(nullptr, of_earlier);
    of_earlier.require_end();
    Query query(5);
    EXPECT_EQ(resumed->pairs(), posterior->pairs());
    for (int round = 0; round < 2; ++round) {
      EXPECT_TRUE(all_near(query.m_by(*resumed), query.m_by(*posterior), 1e-11, 1e-9)) << spec.name();
      query.observe_latest_in(*resumed);
      query.observe_latest_in(*posterior);
    }
  }
}

// Planning expects no less memory than is allocated.
TEST_P(ResidentPosteriorTest, TakesTheMemoryThatIsPlanned) {
  constexpr double kDouble = sizeof(double);
  for (const std::int64_t rounds : {1, 44}) {
    const PosteriorLoad load{small_shape(), PosteriorHome::kDevice, rounds * kRoundPairs, kPosteriorDocs,
                             kRoundPairs};
    const auto n = static_cast<double>(load.pairs);
    const auto p = static_cast<double>(small_shape().parameters());
    const double factors = 2.0 * n * static_cast<double>(small_shape().factors() * sizeof(float));
    const device::FactorTail tail(load.pairs);
    const double rows = kDouble * static_cast<double>(device::factor_numbers(tail.head) + tail.numbers()) +
                        2.0 * n * kPosteriorDocs * kDouble;
    const auto dual = static_cast<double>(after_rounds(kDual, rounds)->bytes());
    EXPECT_GE(dual, rows + factors);
    EXPECT_LE(dual, dual_bytes(load).all());
    EXPECT_LE(dual, rows + factors + 3.0 * device::AddressRange::kChunk + dual_bytes(load).workspace);
    const auto primal = static_cast<double>(after_rounds(kPrimal, rounds)->bytes());
    EXPECT_GE(primal, p * (p + device::DelayedInverse::kRows) * kDouble + factors);
    EXPECT_LE(primal, primal_bytes(load).all());
  }
}

// The sums that kernels split, for sizes that no test computes.
TEST(ResidentPosteriorPlanTest, WorkspacesOfAllSizesArePlanned) {
  for (const NetworkShape& shape : {small_shape(), ntk_shape(136, 100, 2)}) {
    const std::int64_t p = shape.parameters();
    for (const std::int64_t docs : {1, 10, 64, 65, 120, 128, 300, 1000}) {
      for (const std::int64_t added : {1, 5, 25, 256}) {
        for (std::int64_t pairs = 1; pairs < 40'000; pairs += 1 + pairs / 3) {
          const PosteriorLoad load{shape, PosteriorHome::kDevice, pairs, docs, added};
          const device::FactorTail tail(pairs);
          const std::int64_t of_widths = std::max(device::apply_factor_workspace(tail.head, docs),
                                                  device::tail_workspace(tail, docs, true));
          const std::int64_t dual =
              2 * pairs * docs + std::max(of_widths, device::append_workspace(pairs, added));
          EXPECT_LE(static_cast<double>(8 * dual), dual_bytes(load).workspace / 3.0)
              << pairs << " pairs, " << added << " new, " << docs << " documents";
        }
        const PosteriorLoad load{shape, PosteriorHome::kDevice, 1, docs, added};
        const std::int64_t primal =
            p * docs + std::max(device::inverse_gram_workspace(shape, docs), 2 * added * added);
        EXPECT_LE(static_cast<double>(8 * primal), primal_bytes(load).workspace / 3.0)
            << added << " new, " << docs << " documents";
      }
    }
  }
}

#if defined(OLRANK_KERNELS_EMULATED)
// Kernels of a round that fills no block of rows. With rows of L⁻¹ alone a query took four, and pairs five,
// of which two passed over L⁻¹.
TEST_P(ResidentPosteriorTest, AppendingTakesTwoKernels) {
  struct Round {
    std::int64_t pairs;  // before it
    std::int64_t of_query;
  };
  for (const Round& round : {Round{30, 3}, {135, 5}, {258, 5}}) {
    const auto posterior = after_rounds(kDual, round.pairs / kRoundPairs);
    Query query(300);
    query.m_by(*posterior);
    const std::int64_t before = emulation::counts.starts;
    query.m_by(*posterior);
    const std::int64_t scored = emulation::counts.starts;
    query.observe_latest_in(*posterior);
    EXPECT_EQ(scored - before, round.of_query + 1) << round.pairs << " and a copy";
    EXPECT_EQ(emulation::counts.starts - scored, 2 + 1) << round.pairs << " and one that gathers factors";
  }
}

TEST_P(ResidentPosteriorTest, RebuildReplaysThePairsWhenMemoryIsFull) {
  Query query(5);
  for (const PosteriorSpec& spec : {kDual, kPrimal}) {
    const auto posterior = after_rounds(spec, 8);
    const auto before = query.m_by(*posterior);
    const auto fails_and_replays = [&] {
      EXPECT_FALSE(posterior->factorise_afresh(nullptr));
      posterior->rebuild(nullptr);
      EXPECT_TRUE(all_near(query.m_by(*posterior), before, 1e-11, 1e-9)) << posterior->spec().name();
      EXPECT_LT(drift_of(*posterior), 1e-11) << posterior->spec().name();
    };
    emulation::machine.factorisations_fail = true;
    fails_and_replays();
    emulation::machine.factorisations_fail = false;
    emulation::machine.most_factorised = 8 * kRoundPairs;
    fails_and_replays();
    emulation::machine.most_factorised = std::numeric_limits<std::int64_t>::max();
    EXPECT_TRUE(posterior->factorise_afresh(nullptr));
    posterior->drop_fresh_factor();
  }
}

// All probes are columns of one product: one wait, for the figures, and none of them has its own launches.
// Memory is allocated at first only: to free it waits for the whole device, and so for every other trial.
TEST_P(ResidentPosteriorTest, AllProbesOfACheckShareLaunchesAndOneWait) {
  const auto spent_by = [](ResidentPosterior& posterior, const DriftProbes& probes) {
    posterior.errors_of(nullptr, probes);  // allocates
    const emulation::Counts before = emulation::counts;
    const std::int64_t bytes = posterior.bytes();
    posterior.errors_of(nullptr, probes);
    EXPECT_EQ(emulation::counts.allocations, before.allocations) << posterior.spec().name();
    EXPECT_EQ(posterior.bytes(), bytes) << posterior.spec().name();
    return emulation::Counts{.starts = emulation::counts.starts - before.starts,
                             .waits = emulation::counts.waits - before.waits,
                             .solves = emulation::counts.solves - before.solves};
  };
  for (const PosteriorSpec& spec : {kDual, kPrimal}) {
    const auto posterior = after_rounds(spec, 8);
    const DriftProbes all = drift_probes(spec.checks, small_shape().parameters(), posterior->pairs());
    DriftProbes one = all;
    one.vectors.resize(small_shape().parameters());
    one.pairs.resize(1);
    ASSERT_EQ(all.vectors.size() + all.pairs.size(), 2U * small_shape().parameters() + 5U);
    const emulation::Counts of_all = spent_by(*posterior, all);
    EXPECT_EQ(of_all.starts, spent_by(*posterior, one).starts) << posterior->spec().name();
    EXPECT_LE(of_all.starts, 26) << posterior->spec().name();
    EXPECT_EQ(of_all.waits, 1) << posterior->spec().name();
    EXPECT_EQ(of_all.solves, 0) << posterior->spec().name();
    ASSERT_TRUE(posterior->factorise_afresh(nullptr));
    EXPECT_EQ(spent_by(*posterior, all).solves, 1) << posterior->spec().name();
    posterior->drop_fresh_factor();
  }
}

TEST_P(ResidentPosteriorTest, AProbeHasTheSameErrorAmongOthers) {
  // Where no digit is right, an error is infinite.
  const auto expect_same = [](double found, double expected) {
    EXPECT_GT(expected, 1e-6);
    EXPECT_TRUE(found == expected || std::abs(found - expected) <= 1e-9 * expected)
        << found << " " << expected;
  };
  for (const PosteriorSpec& spec : {kDual, kPrimal}) {
    const auto wrong = with_a_wrong_inverse(*after_rounds(spec, 8), spec);
    const std::int64_t p = small_shape().parameters();
    const DriftProbes all = drift_probes(spec.checks, p, wrong->pairs());
    const std::vector<double> errors = wrong->errors_of(nullptr, all);
    ASSERT_EQ(errors.size(), 7U);
    for (std::int64_t vector = 0; vector < 2; ++vector) {
      const auto first = all.vectors.begin() + vector * p;
      expect_same(wrong->errors_of(nullptr, {{first, first + p}, {}}).at(0), errors[vector]);
    }
    for (std::size_t pair = 0; pair < 5; ++pair)
      expect_same(wrong->errors_of(nullptr, {{}, {all.pairs[pair]}}).at(0), errors[2 + pair]);
  }
}

TEST_P(ResidentPosteriorTest, AnEvaluationReportsTheLatestCheckAndOneOfFourFactorisesAfresh) {
  PosteriorSpec often = kDual;
  often.checks.every = kRoundPairs;
  device::WatchedPosterior watched(often, on_->products);
  const std::int64_t factorised = emulation::counts.factorisations;
  DeviceArray<double> m = unset_on_device<double>(kPosteriorDocs * kPosteriorDocs);
  for (std::uint64_t round = 0; round < 7; ++round) {
    Query query(100 + round);
    watched.gram(nullptr, query.rows(), m.data());
    watched.observe(nullptr, query.rows(), m.data(), query.pairs(), kRoundPairs);
    EXPECT_TRUE(watched.check_is_due());
    watched.check_drift(nullptr);
    EXPECT_FALSE(watched.check_is_due());
  }
  EXPECT_EQ(emulation::counts.factorisations - factorised, 1);
  const std::int64_t before = emulation::counts.blocks_run;
  const double drift = watched.drift(nullptr);
  EXPECT_EQ(emulation::counts.blocks_run, before) << "an evaluation launches nothing";
  device::WatchedPosterior other(often, on_->products);
  StateReader read(state_of(watched), "memory");
  other.load(nullptr, read);
  const std::int64_t loaded = emulation::counts.blocks_run;
  EXPECT_EQ(other.drift(nullptr), drift);
  EXPECT_EQ(emulation::counts.blocks_run, loaded) << "a resumed trial reports what the other would have";
}
#endif

/// Bytes of each lineage, as the thread that writes a checkpoint gets them.
using ArrivedState = std::map<std::uint64_t, std::vector<std::byte>>;

/// Passes on what has arrived; returns whether nothing is left.
bool pass_on(StateWriter& state, ArrivedState& arrived, bool wait) {
  bool all = true;
  for (const StateWriter::NewBytes& one : state.new_bytes()) {
    std::vector<std::byte>& bytes = arrived[one.lineage];
    all &= one.arrival->pass_on(
        [&](const ArrivedBytes& new_ones) {
          bytes.insert(bytes.end(), new_ones.bytes.begin(), new_ones.bytes.end());
        },
        wait);
  }
  return all;
}

/// The pairs' factors, L⁻¹ and the newest rows of L as saved at once.
std::vector<std::vector<std::byte>> saved_at_once(const ResidentPosterior& posterior) {
  StateReader reader(state_of(posterior), "memory");
  const auto pairs = reader.get<float>("device.pairs");
  const auto factor = reader.get<double>("device.factor");
  const auto tail = reader.get<double>("device.tail");
  const auto bytes_of = [](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  std::vector<std::vector<std::byte>> saved{bytes_of(pairs), bytes_of(factor), bytes_of(tail)};
  std::erase_if(saved, [](const auto& bytes) { return bytes.empty(); });
  return saved;
}

// Rounds go on while a checkpoint is copied; a rebuild and the end wait for it.
TEST_P(ResidentPosteriorTest, SavesWhatIsNewWhileRoundsGoOn) {
  enum class Then { kRounds, kRebuild, kEnd };
  for (const Then then : {Then::kRounds, Then::kRebuild, Then::kEnd}) {
    auto posterior = after_rounds(kDual, 20);
    StateWriter::Stored stored;
    ArrivedState arrived;
    for (int checkpoint = 0; checkpoint < 2; ++checkpoint) {
      device::OwnedStream::wait_for(nullptr);
      const auto expected = saved_at_once(*posterior);
      StateWriter state(stored);
      posterior->save(state);
      const bool goes_on = checkpoint == 0 || then == Then::kRounds;
      if (goes_on) {
        for (std::uint64_t round = 0; round < 4; ++round) {
          Query(200 + round).observe_in(*posterior);
          pass_on(state, arrived, false);
        }
      } else if (then == Then::kRebuild) {
        posterior->rebuild(nullptr);
      } else {
        posterior.reset();
      }
      EXPECT_TRUE(pass_on(state, arrived, true));
      std::vector<std::vector<std::byte>> found;
      for (const auto& [lineage, bytes] : arrived) {
        EXPECT_EQ(bytes.size(), state.with_new_bytes().at(lineage));
        found.push_back(bytes);
      }
      EXPECT_EQ(found, expected);
      stored = state.with_new_bytes();
    }
  }
}

#if defined(OLRANK_KERNELS_EMULATED)
// Neither a digest nor a checkpoint takes a matrix through memory of the host at once.
TEST_P(ResidentPosteriorTest, StatesPassInPiecesAndHaveTheFingerprintOfTheWhole) {
  for (const PosteriorSpec& spec : {kDual, kPrimal}) {
    const auto posterior = after_rounds(spec);
    device::OwnedStream::wait_for(nullptr);
    StateWriter whole;
    posterior->save(whole);
    emulation::take_largest_pageable_copy();
    StateWriter digest = StateWriter::digester();
    posterior->save(digest);
    EXPECT_EQ(digest.fingerprint(), whole.fingerprint()) << spec.name();
    EXPECT_EQ(digest.value_bytes(), whole.value_bytes()) << spec.name();
    StateWriter blocks{StateWriter::Stored{}};
    posterior->save(blocks);
    for (const StateWriter::NewBytes& one : blocks.new_bytes()) {
      std::size_t largest = 0;
      std::size_t all = 0;
      const auto count = [&](const ArrivedBytes& arrived) {
        largest = std::max(largest, arrived.bytes.size());
        all += arrived.bytes.size();
      };
      EXPECT_TRUE(one.arrival->pass_on(count, true));
      EXPECT_LE(largest, all / 8 + 64) << spec.name();
    }
    EXPECT_LE(emulation::take_largest_pageable_copy(), sizeof(device::CovarianceStatus)) << spec.name();
  }
}
#endif

// Numbers that change with the next pairs, as the newest rows become part of the inverse, have left before.
TEST_P(ResidentPosteriorTest, TheInverseLeavesBeforeItChanges) {
  static_assert(device::DelayedInverse::kRows == 85 * kRoundPairs + 1);
  const auto posterior = after_rounds(kPrimal, 85);
  StateReader reader = read_state(*posterior);
  reader.get<float>("device.pairs");
  reader.get<double>("device.whole_inverse");
  const auto expected = reader.get<double>("device.inverse_tail");
  EXPECT_EQ(std::ssize(expected), 85 * kRoundPairs * small_shape().parameters());
  StateWriter state{StateWriter::Stored{}};
  posterior->save(state);
  ArrivedState arrived;
  pass_on(state, arrived, false);
  Query(300).observe_in(*posterior);
  EXPECT_TRUE(pass_on(state, arrived, true));
  const std::vector<std::byte>& found = arrived.rbegin()->second;
  ASSERT_EQ(found.size(), expected.size() * sizeof(double));
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0);
  // Saved numbers are not saved a second time.
  device::OwnedStream::wait_for(nullptr);
  StateWriter first{StateWriter::Stored{}};
  posterior->save(first);
  pass_on(first, arrived, true);
  StateWriter second(first.with_new_bytes());
  posterior->save(second);
  EXPECT_TRUE(second.new_bytes().empty());
}

TEST_P(ResidentPosteriorTest, RefusesStatesOfOtherForms) {
  const auto posterior = after_rounds(kDual, 2);
  const auto other = made(kDiagonal);
  StateReader reader(state_of(*posterior), "memory");
  EXPECT_THROW(other->load(nullptr, reader), IoError);
}

OLRANK_KERNEL_TESTS(ResidentPosteriorTest);

}  // namespace
}  // namespace olrank
