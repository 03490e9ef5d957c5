#include "cuda/engine/resident_posterior.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tests/cuda/ops/kernel_test.h"
#if defined(OLRANK_KERNELS_EMULATED)
#include "tests/cuda/emulation/device_memory.h"
#endif

namespace olrank {
namespace {

class ResidentPosteriorTest : public KernelTest {};

using device::ResidentPosterior;

constexpr std::int64_t kPosteriorDocs = 9;
constexpr std::int64_t kPosteriorRounds = 50;
constexpr std::int64_t kRoundPairs = 3;

NetworkShape small_shape() {
  return ntk_shape(5, 6, 2);
}

device::ResidentPosteriorSpec spec() {
  return {small_shape(), 0.3, 0.125, {}};
}

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
  DeviceArray<double> m_{kPosteriorDocs * kPosteriorDocs};
};

std::unique_ptr<ResidentPosterior> after_rounds(DeviceCovariance covariance,
                                                std::int64_t rounds = kPosteriorRounds) {
  auto posterior = device::make_resident_posterior(covariance, spec(), nullptr);
  for (std::int64_t round = 0; round < rounds; ++round)
    Query(static_cast<std::uint64_t>(100 + round)).observe_in(*posterior);
  return posterior;
}

/// The larger relative error of w² along a random vector and of an observed pair.
double drift_of(ResidentPosterior& posterior) {
  std::vector<double> probe(small_shape().parameters());
  RngStream(test_key(7), 0).unit_vector(probe);
  return std::max(posterior.error_along(nullptr, probe), posterior.error_of_pair(nullptr, 3));
}

TEST_P(ResidentPosteriorTest, RebuildKeepsM) {
  Query query(5);
  for (const DeviceCovariance covariance :
       {DeviceCovariance::kDual, DeviceCovariance::kPrimal, DeviceCovariance::kDiagonalOfInverse}) {
    const auto posterior = after_rounds(covariance);
    EXPECT_EQ(posterior->pairs(), kPosteriorRounds * kRoundPairs);
    const auto before = query.m_by(*posterior);
    EXPECT_LT(drift_of(*posterior), 1e-11);
    posterior->rebuild(nullptr);
    EXPECT_TRUE(all_near(query.m_by(*posterior), before, 1e-11, 1e-9)) << posterior->form();
    EXPECT_LT(drift_of(*posterior), 1e-11);
  }
}

TEST_P(ResidentPosteriorTest, PrimalFormHasTheMOfTheDualForm) {
  Query query(5);
  auto dual = after_rounds(DeviceCovariance::kDual);
  const auto before = query.m_by(*dual);
  const auto primal = device::make_primal_of(std::move(dual), spec(), nullptr);
  EXPECT_EQ(primal->form(), "primal");
  EXPECT_EQ(primal->pairs(), kPosteriorRounds * kRoundPairs);
  EXPECT_TRUE(all_near(query.m_by(*primal), before, 1e-11, 1e-9));
  // And after one more round.
  const auto other = after_rounds(DeviceCovariance::kPrimal, kPosteriorRounds);
  Query next(6);
  next.observe_in(*primal);
  next.observe_in(*other);
  EXPECT_TRUE(all_near(query.m_by(*primal), query.m_by(*other), 1e-11, 1e-9));
}

TEST_P(ResidentPosteriorTest, DriftIsLargeWhenTheInverseIsWrong) {
  // An inverse for another scale.
  const auto posterior = after_rounds(DeviceCovariance::kDiagonalOfInverse, 2);
  EXPECT_LT(drift_of(*posterior), 1e-12);
  auto wrong_spec = spec();
  wrong_spec.scale *= 1.01;
  const auto wrong = device::make_resident_posterior(DeviceCovariance::kPrimal, wrong_spec, nullptr);
  StateWriter state;
  posterior->save(state);
  StateReader reader(state.bytes(), "memory");
  wrong->load(nullptr, reader);
  EXPECT_GT(drift_of(*wrong), 1e-4);
}

// Evaluations measure at any time, also between a query's widths and its pairs.
TEST_P(ResidentPosteriorTest, MeasuringLeavesTheLatestGramAlone) {
  for (const DeviceCovariance covariance :
       {DeviceCovariance::kDual, DeviceCovariance::kPrimal, DeviceCovariance::kDiagonalOfInverse}) {
    const auto posterior = after_rounds(covariance);
    const auto measured = after_rounds(covariance);
    Query query(6);
    query.observe_in(*posterior);
    query.m_by(*measured);
    drift_of(*measured);
    query.observe_latest_in(*measured);
    EXPECT_EQ(query.m_by(*measured), query.m_by(*posterior)) << posterior->form();
  }
}

#if defined(OLRANK_KERNELS_EMULATED)
// Freeing memory waits for the whole device, and with it for every other trial.
TEST_P(ResidentPosteriorTest, MeasuringAllocatesOnlyAtFirst) {
  for (const DeviceCovariance covariance :
       {DeviceCovariance::kDual, DeviceCovariance::kPrimal, DeviceCovariance::kDiagonalOfInverse}) {
    const auto posterior = after_rounds(covariance, 4);
    drift_of(*posterior);
    const std::int64_t before = emulation::allocations_on_device();
    const std::int64_t bytes = posterior->bytes();
    drift_of(*posterior);
    EXPECT_EQ(emulation::allocations_on_device(), before) << posterior->form();
    EXPECT_EQ(posterior->bytes(), bytes) << posterior->form();
  }
}
#endif

TEST_P(ResidentPosteriorTest, RefusesStatesOfOtherForms) {
  const auto posterior = after_rounds(DeviceCovariance::kDual, 2);
  StateWriter state;
  posterior->save(state);
  const auto other = device::make_resident_posterior(DeviceCovariance::kDiagonal, spec(), nullptr);
  StateReader reader(state.bytes(), "memory");
  EXPECT_THROW(other->load(nullptr, reader), IoError);
}

OLRANK_KERNEL_TESTS(ResidentPosteriorTest);

}  // namespace
}  // namespace olrank
