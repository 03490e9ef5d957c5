#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/covariance/dictionary_policy.h"
#include "core/error.h"
#include "core/math/pair_loss.h"
#include "cuda/engine/resident_posterior.h"
#include "cuda/runtime/work.h"
#include "models/posterior/posterior.h"
#include "models/posterior/posterior_memory.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/models/posterior/near_dependent_pairs.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/saved_state.h"
#if defined(OLRANK_KERNELS_EMULATED)
#include "tests/cuda/emulation/device_memory.h"
#endif

namespace olrank {
namespace {

constexpr std::int64_t kInducingDocs = 9;
constexpr const char* kOneOrder = "one order of threads is enough";

NetworkShape inducing_shape() {
  return ntk_shape(12, 16, 2);
}

PosteriorSpec inducing_spec(std::int64_t budget) {
  PosteriorSpec spec;
  spec.shape = inducing_shape();
  spec.covariance = Covariance::kInducing;
  spec.budget = budget;
  spec.lambda = 0.3;
  spec.scale = 0.125;
  return spec;
}

/// The pairs of a round: three, and every fifth round twenty.
std::vector<PreferencePair> pairs_of_round(std::int64_t round) {
  std::vector<PreferencePair> pairs{{0, 1}, {5, 2}, {3, 8}};
  for (std::int32_t i = 0; round % 5 == 4 && i < 17; ++i) pairs.push_back({i % 9, (i + 1 + i / 9) % 9});
  return pairs;
}

/// A round's query: every tenth asks what the one before has asked.
class Round {
 public:
  explicit Round(std::int64_t round)
      : factors_(random_factors(inducing_shape(), kInducingDocs,
                                static_cast<std::uint64_t>(1000 + round - (round % 10 == 9 ? 1 : 0)))),
        pairs_(pairs_of_round(round)),
        rows_(on_device(factors_)),
        there_(on_device(pairs_)) {}

  device::FactorRows rows() { return {rows_.data(), kInducingDocs, inducing_shape().factors()}; }
  TangentFactors factors() const { return {factors_.data(), kInducingDocs}; }
  std::span<const PreferencePair> pairs() const { return pairs_; }

  void observe_in(device::ResidentPosterior& posterior) {
    posterior.gram(nullptr, rows(), m_.data());
    posterior.observe(nullptr, rows(), m_.data(), there_.data(), std::ssize(pairs_));
  }
  std::vector<double> width_sq_by(device::ResidentPosterior& posterior) {
    posterior.gram(nullptr, rows(), m_.data());
    const std::vector<double> m = m_.to_host();
    std::vector<double> width_sq;
    for (std::int64_t i = 0; i < kInducingDocs; ++i) {
      for (std::int64_t j = 0; j < i; ++j)
        width_sq.push_back(m[i * kInducingDocs + i] + m[j * kInducingDocs + j] -
                           2.0 * m[i * kInducingDocs + j]);
    }
    return width_sq;
  }
  std::vector<double> width_sq_by(ExecutionContext& context, Posterior& posterior) const {
    std::vector<double> all(kInducingDocs * kInducingDocs);
    posterior.width_sq(context, factors(), all);
    std::vector<double> width_sq;
    for (std::int64_t i = 0; i < kInducingDocs; ++i)
      width_sq.insert(width_sq.end(), all.begin() + i * kInducingDocs, all.begin() + i * kInducingDocs + i);
    return width_sq;
  }

 private:
  std::vector<float> factors_;
  std::vector<PreferencePair> pairs_;
  DeviceArray<float> rows_;
  DeviceArray<PreferencePair> there_;
  DeviceArray<double> m_ = unset_on_device<double>(kInducingDocs * kInducingDocs);
};

class ResidentInducingTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    library_ = std::make_unique<DefaultProducts>();
  }
  void TearDown() override { library_.reset(); }

  std::unique_ptr<device::ResidentPosterior> made(const PosteriorSpec& spec) {
    return device::make_resident_posterior(spec, library_->products);
  }
  std::unique_ptr<device::ResidentPosterior> after_rounds(std::int64_t budget, std::int64_t rounds) {
    auto posterior = made(inducing_spec(budget));
    for (std::int64_t round = 0; round < rounds; ++round) Round(round).observe_in(*posterior);
    return posterior;
  }

  std::unique_ptr<DefaultProducts> library_;
};

device::CovarianceStatus status_of(const device::ResidentPosterior& posterior) {
  device::OwnedStream::wait_for(nullptr);
  device::CovarianceStatus status;
  device::copy_to_host(posterior.status(), std::span(&status, 1));
  return status;
}

std::string saved(const device::ResidentPosterior& posterior) {
  device::OwnedStream::wait_for(nullptr);
  return state_of(posterior);
}

std::vector<std::int64_t> numbers_of(const std::string& state, std::string_view name) {
  StateReader reader(state, "memory");
  reader.skip_to(name);
  return reader.get<std::int64_t>(name);
}

// Rows are appended until R is computed again, and some pairs come twice.
TEST_P(ResidentInducingTest, WithRoomForAllPairsItIsExact) {
  const auto exact = made(inducing_spec(1).shadow());
  const auto posterior = made(inducing_spec(400));
  for (std::int64_t round = 0; round < 25; ++round) {
    Round query(round);
    if (round % 4 == 0 || round > 22) {
      EXPECT_TRUE(all_near(query.width_sq_by(*posterior), query.width_sq_by(*exact), 1e-12, 1e-9)) << round;
      const auto status = status_of(*posterior);
      EXPECT_EQ(status.failed, 0);
      EXPECT_NEAR(status.log_det, status_of(*exact).log_det, 1e-8) << round;
    }
    query.observe_in(*posterior);
    query.observe_in(*exact);
  }
  EXPECT_EQ(posterior->pairs(), exact->pairs());
}

// Through the growth of the dictionary, its choices, and pairs that leave the window.
TEST_P(ResidentInducingTest, HasTheWidthsOfTheCpu) {
  ExecutionContext context;
  for (const std::int64_t budget : {1, 40}) {
    const std::int64_t rounds = budget == 1 ? 12 : 40;
    const auto spec = inducing_spec(budget);
    const auto on_cpu = make_posterior(spec);
    const auto posterior = made(spec);
    for (std::int64_t round = 0; round < rounds; ++round) {
      Round query(round);
      if (round % 6 == 0 || round + 2 > rounds) {
        EXPECT_TRUE(
            all_near(query.width_sq_by(*posterior), query.width_sq_by(context, *on_cpu), 1e-12, 1e-9))
            << budget << " " << round;
        EXPECT_NEAR(status_of(*posterior).log_det, on_cpu->log_det(), 1e-8) << round;
      }
      query.observe_in(*posterior);
      on_cpu->observe(context, query.factors(), query.pairs());
    }
    EXPECT_EQ(posterior->pairs(), on_cpu->pairs());
    // The decisions: what was chosen among all pairs.
    const std::string cpu_state = state_of(*on_cpu);
    EXPECT_EQ(numbers_of(saved(*posterior), "device.inducing_numbers"),
              numbers_of(cpu_state, "inducing_numbers"));
  }
}

TEST_P(ResidentInducingTest, RefusesStatesOfAnotherBudget) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << kOneOrder;
  const auto posterior = after_rounds(40, 20);
  const auto smaller = made(inducing_spec(30));
  StateReader reader(saved(*posterior), "memory");
  EXPECT_THROW(smaller->load(nullptr, reader), IoError);
}

// R as it grew row by row, against R from a fresh factorisation.
TEST_P(ResidentInducingTest, RebuildKeepsTheWidths) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << kOneOrder;
  for (const std::int64_t rounds : {0, 33}) {
    const auto posterior = after_rounds(40, rounds);
    Round query(500);
    const auto before = query.width_sq_by(*posterior);
    posterior->rebuild(nullptr);
    EXPECT_TRUE(all_near(query.width_sq_by(*posterior), before, 1e-12, 1e-9)) << rounds;
    EXPECT_EQ(status_of(*posterior).failed, 0);
  }
}

/// All near-dependent pairs.
void observe_near_dependent(device::ResidentPosterior& posterior) {
  for (std::int64_t chain = 0; chain < NearDependentPairs::kChains; ++chain) {
    const NearDependentPairs query(chain);
    DeviceArray<float> rows = on_device(query.factors);
    const auto pairs = on_device(query.pairs);
    DeviceArray<double> m = unset_on_device<double>(query.kDocs * query.kDocs);
    const device::FactorRows docs{rows.data(), query.kDocs, query.shape().factors()};
    posterior.gram(nullptr, docs, m.data());
    posterior.observe(nullptr, docs, m.data(), pairs.data(), std::ssize(query.pairs));
    device::OwnedStream::wait_for(nullptr);
  }
}

// As on the CPU, which does so where the drift is beyond its bound.
TEST_P(ResidentInducingTest, RebuildChoosesTheDictionaryByAStricterPolicy) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << kOneOrder;
  PosteriorSpec cpu_spec;
  cpu_spec.shape = NearDependentPairs::shape();
  cpu_spec.covariance = Covariance::kInducing;
  cpu_spec.budget = 400;
  cpu_spec.lambda = 1.0;
  cpu_spec.scale = 0.1;
  cpu_spec.checks.drift_bound = 1e-7;
  const ExpectedWarnings warnings;
  ExecutionContext context;
  const auto on_cpu = make_posterior(cpu_spec);
  PosteriorSpec spec = cpu_spec;
  spec.checks = {};
  const auto posterior = made(spec);
  for (int twice = 0; twice < 2; ++twice) {
    observe_near_dependent(*posterior);
    for (std::int64_t chain = 0; chain < NearDependentPairs::kChains; ++chain) {
      const NearDependentPairs query(chain);
      on_cpu->observe(context, {query.factors.data(), query.kDocs}, query.pairs);
    }
  }
  std::vector<double> probe(cpu_spec.shape.parameters());
  RngStream(test_key(7), 0).unit_vector(probe);
  posterior->rebuild(nullptr);
  EXPECT_EQ(status_of(*posterior).failed, 0);
  EXPECT_LT(posterior->errors_of(nullptr, {probe, {}})[0], 1e-12);
  const std::string cpu_state = state_of(*on_cpu);
  const std::vector<std::int64_t> chosen = numbers_of(cpu_state, "inducing_numbers");
  EXPECT_EQ(std::ssize(chosen), 24);
  EXPECT_EQ(numbers_of(saved(*posterior), "device.inducing_numbers"), chosen);
  EXPECT_NEAR(status_of(*posterior).log_det, on_cpu->log_det(), 1e-8);

  // What was left out does not enter again, also after loading.
  const auto resumed = made(spec);
  StateReader reader(saved(*posterior), "memory");
  resumed->load(nullptr, reader);
  observe_near_dependent(*posterior);
  observe_near_dependent(*resumed);
  EXPECT_EQ(numbers_of(saved(*posterior), "device.inducing_numbers"), chosen);
  EXPECT_EQ(saved(*resumed), saved(*posterior));
}

TEST_P(ResidentInducingTest, MeasuresItsDrift) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << kOneOrder;
  std::vector<double> probe(inducing_shape().parameters());
  RngStream(test_key(7), 0).unit_vector(probe);
  for (const std::int64_t rounds : {0, 12}) {
    const auto posterior = after_rounds(40, rounds);
    EXPECT_LT(posterior->errors_of(nullptr, {probe, {}})[0], 1e-11);
    if (rounds == 0) continue;
    const std::vector<double> errors = posterior->errors_of(nullptr, {probe, {3, 0}});
    ASSERT_EQ(errors.size(), 3U);
    EXPECT_LT(errors[0], 1e-11);
    EXPECT_LT(std::max(errors[1], errors[2]), 1e-9);
  }
  // R of another λ.
  const auto posterior = after_rounds(40, 12);
  auto other = inducing_spec(40);
  other.lambda *= 1.05;
  const auto wrong = made(other);
  StateReader reader(saved(*posterior), "memory");
  wrong->load(nullptr, reader);
  EXPECT_GT(wrong->errors_of(nullptr, {probe, {}})[0], 1e-4);
}

TEST_P(ResidentInducingTest, MemoryStaysFlat) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << kOneOrder;
  const auto posterior = after_rounds(8, 70);
  const std::int64_t bytes = posterior->bytes();
#if defined(OLRANK_KERNELS_EMULATED)
  std::vector<std::unique_ptr<Round>> rounds;
  for (std::int64_t round = 70; round < 90; ++round) rounds.push_back(std::make_unique<Round>(round));
  // Freeing memory waits for the whole device, and with it for every other trial.
  const std::int64_t allocations = emulation::allocations_on_device();
  for (const auto& round : rounds) round->observe_in(*posterior);
  EXPECT_EQ(emulation::allocations_on_device(), allocations);
#endif
  EXPECT_EQ(posterior->bytes(), bytes);
}

// What planning expects against what is allocated.
TEST_P(ResidentInducingTest, TakesTheMemoryThatIsPlanned) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << kOneOrder;
  constexpr std::int64_t kMostPairs = 20;
  for (const std::int64_t budget : {1, 50}) {
    for (const std::int64_t rounds : {1, 20}) {
      const auto posterior = after_rounds(budget, rounds);
      const PosteriorLoad load{inducing_shape(), PosteriorHome::kDevice, posterior->pairs(), kInducingDocs,
                               kMostPairs};
      const PosteriorBytes planned = inducing_bytes(load, budget);
      EXPECT_LE(static_cast<double>(posterior->bytes()), planned.all()) << budget << " " << rounds;
      const auto members = static_cast<double>(std::min(posterior->pairs(), budget));
      EXPECT_GE(static_cast<double>(posterior->bytes()), 3.0 * members * members * sizeof(double));
    }
  }
}

TEST_P(ResidentInducingTest, PairsThatAreNotFiniteAreReported) {
  const auto posterior = after_rounds(40, 5);
  Round query(5);
  DeviceArray<float> broken(std::span<const float>(
      std::vector<float>(kInducingDocs * inducing_shape().factors(), std::nanf(""))));
  DeviceArray<double> m = unset_on_device<double>(kInducingDocs * kInducingDocs);
  const auto pairs = on_device(std::vector<PreferencePair>{{0, 1}});
  const device::FactorRows rows{broken.data(), kInducingDocs, inducing_shape().factors()};
  posterior->gram(nullptr, rows, m.data());
  posterior->observe(nullptr, rows, m.data(), pairs.data(), 1);
  EXPECT_EQ(status_of(*posterior).failed, 1);
  // What the host does next: it rebuilds, and gives up if that does not help.
  query.width_sq_by(*posterior);
  posterior->rebuild(nullptr);
  EXPECT_EQ(status_of(*posterior).failed, 1);
}

// The host reads the status after a round, whose pairs may come in several blocks.
TEST_P(ResidentInducingTest, LaterPairsDoNotHideAFailure) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << kOneOrder;
  const auto posterior = after_rounds(400, 5);
  auto factors = random_factors(inducing_shape(), kInducingDocs, 77);
  std::fill_n(factors.begin(), inducing_shape().factors(), std::nanf(""));
  DeviceArray<float> broken = on_device(factors);
  const device::FactorRows rows{broken.data(), kInducingDocs, inducing_shape().factors()};
  std::vector<PreferencePair> pairs{{0, 1}};
  while (std::ssize(pairs) < DictionaryPolicy::kRows + 3)
    pairs.push_back({1 + static_cast<std::int32_t>(pairs.size()) % 7, 8});
  const auto there = on_device(pairs);
  posterior->observe(nullptr, rows, nullptr, there.data(), std::ssize(pairs));
  EXPECT_EQ(status_of(*posterior).failed, 1);
  Round(6).observe_in(*posterior);
  EXPECT_EQ(status_of(*posterior).failed, 1);
}

TEST_P(ResidentInducingTest, AFailedFactorisationStaysFailed) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << kOneOrder;
  auto indefinite = inducing_spec(40);
  indefinite.lambda = -1e6;
  const auto posterior = made(indefinite);
  StateReader reader(saved(*after_rounds(40, 12)), "memory");
  posterior->load(nullptr, reader);
  std::int64_t next = 12;
  for (int rebuild = 0; rebuild < 2; ++rebuild) {
    posterior->rebuild(nullptr);
    EXPECT_EQ(status_of(*posterior).failed, 1) << rebuild;
    Round(next++).observe_in(*posterior);
    EXPECT_EQ(status_of(*posterior).failed, 1) << rebuild;
  }
}

OLRANK_KERNEL_TESTS(ResidentInducingTest);

}  // namespace
}  // namespace olrank
