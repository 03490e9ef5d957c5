#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/engine/resident_forms.h"
#include "cuda/engine/watched_posterior.h"
#include "cuda/runtime/work.h"
#include "models/posterior/posterior.h"
#include "models/posterior/posterior_memory.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/support/expected_warnings.h"
#if defined(OLRANK_KERNELS_EMULATED)
#include "tests/cuda/emulation/device_memory.h"
#endif

namespace olrank {
namespace {

constexpr std::int64_t kBlockDocs = 12;
constexpr Covariance kBlockForms[] = {Covariance::kUnitBlocks, Covariance::kLastLayer};

NetworkShape block_shape() {
  return standard_shape(5, 4, 3);
}

PosteriorSpec block_spec(Covariance covariance) {
  PosteriorSpec spec;
  spec.shape = block_shape();
  spec.covariance = covariance;
  spec.lambda = 0.3;
  spec.scale = 0.125;
  return spec;
}

class ResidentBlocksTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped()) products_ = std::make_unique<DefaultProducts>();
  }

  std::unique_ptr<device::ResidentPosterior> made(Covariance covariance) {
    return device::make_resident_posterior(block_spec(covariance), products_->products);
  }

  std::unique_ptr<DefaultProducts> products_;
};

/// A query and the pairs of a round.
class BlockQuery {
 public:
  explicit BlockQuery(std::uint64_t seed, std::int64_t count = 3)
      : rows_(on_device(random_factors(block_shape(), kBlockDocs, seed))), count_(count) {
    for (std::int64_t s = 0; s < count; ++s) {
      chosen_.push_back({static_cast<std::int32_t>((5 * s + 1) % kBlockDocs),
                         static_cast<std::int32_t>((7 * s + 2) % kBlockDocs)});
    }
    pairs_ = on_device(chosen_);
  }

  const std::vector<PreferencePair>& pairs() const { return chosen_; }
  device::FactorRows rows() { return {rows_.data(), kBlockDocs, block_shape().factors()}; }
  std::vector<double> m_by(device::ResidentPosterior& posterior) {
    posterior.gram(nullptr, rows(), m_.data());
    const std::vector<double> m = m_.to_host();
    std::vector<double> lower;
    for (std::int64_t i = 0; i < kBlockDocs; ++i)
      lower.insert(lower.end(), m.begin() + i * kBlockDocs, m.begin() + i * kBlockDocs + i + 1);
    return lower;
  }
  void observe_latest_in(device::ResidentPosterior& posterior, std::int64_t first, std::int64_t count) {
    posterior.observe(nullptr, rows(), m_.data(), pairs_.data() + first, count);
  }
  void observe_in(device::ResidentPosterior& posterior) {
    m_by(posterior);
    observe_latest_in(posterior, 0, count_);
  }
  void observe_in(device::WatchedPosterior& posterior) {
    posterior.gram(nullptr, rows(), m_.data());
    posterior.observe(nullptr, rows(), m_.data(), pairs_.data(), count_);
    posterior.check_drift(nullptr);
  }

 private:
  DeviceArray<float> rows_;
  std::vector<PreferencePair> chosen_;
  DeviceArray<PreferencePair> pairs_;
  DeviceArray<double> m_ = unset_on_device<double>(kBlockDocs * kBlockDocs);
  std::int64_t count_;
};

void play_rounds(device::ResidentPosterior& posterior, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t round = first; round < first + count; ++round)
    BlockQuery(100 + round).observe_in(posterior);
}

TEST_P(ResidentBlocksTest, MatchesTheCpu) {
  for (const Covariance covariance : kBlockForms) {
    const auto on_device = made(covariance);
    ExecutionContext context;
    const auto on_cpu = make_posterior(block_spec(covariance));
    for (std::uint64_t round = 0; round < 6; ++round) {
      BlockQuery query(100 + round);
      const std::vector<double> m = query.m_by(*on_device);
      const auto at = [&](std::int64_t i, std::int64_t j) { return m[i * (i + 1) / 2 + j]; };
      const std::vector<float> factors = random_factors(block_shape(), kBlockDocs, 100 + round);
      const TangentFactors view = view_of(block_shape(), factors);
      std::vector<double> expected(kBlockDocs * kBlockDocs);
      on_cpu->width_sq(context, view, expected);
      for (std::int64_t i = 0; i < kBlockDocs; ++i) {
        for (std::int64_t j = 0; j < i; ++j)
          ASSERT_NEAR(at(i, i) + at(j, j) - 2.0 * at(i, j), expected[i * kBlockDocs + j],
                      1e-12 * (at(i, i) + at(j, j)));
      }
      query.observe_latest_in(*on_device, 0, 3);
      on_cpu->observe(context, view, query.pairs());
    }
    device::CovarianceStatus status;
    device::copy_to_host<device::CovarianceStatus>(on_device->status(), std::span(&status, 1));
    EXPECT_NEAR(status.log_det, on_cpu->log_det(), 1e-12 * on_cpu->log_det());
    EXPECT_EQ(on_device->pairs(), on_cpu->pairs());
  }
}

// What planning expects against what is allocated.
TEST_P(ResidentBlocksTest, TakesTheMemoryThatIsPlanned) {
  for (const Covariance covariance : kBlockForms) {
    const auto posterior = made(covariance);
    const auto first = posterior->bytes();
    BlockQuery(4, 37).observe_in(*posterior);
    const double planned =
        block_bytes({block_shape(), PosteriorHome::kDevice, 37, kBlockDocs, 37}, covariance);
    EXPECT_GT(posterior->bytes(), first);
    EXPECT_LE(static_cast<double>(posterior->bytes()), planned);
    EXPECT_GE(static_cast<double>(3 * posterior->bytes()), planned);
  }
}

TEST_P(ResidentBlocksTest, ALongRoundIsObservedInParts) {
  for (const Covariance covariance : kBlockForms) {
    const auto at_once = made(covariance);
    const auto one_by_one = made(covariance);
    BlockQuery query(4, 37);
    query.observe_in(*at_once);
    for (std::int64_t s = 0; s < 37; ++s) {
      query.m_by(*one_by_one);
      query.observe_latest_in(*one_by_one, s, 1);
    }
    EXPECT_EQ(at_once->pairs(), 37);
    EXPECT_TRUE(all_near(query.m_by(*at_once), query.m_by(*one_by_one), 0.0, 1e-10))
        << at_once->spec().name();
  }
}

TEST_P(ResidentBlocksTest, ALoadedPosteriorContinuesToTheSameBits) {
  for (const Covariance covariance : kBlockForms) {
    const auto posterior = made(covariance);
    play_rounds(*posterior, 0, 6);
    StateWriter state;
    posterior->save(state);
    const auto loaded = made(covariance);
    StateReader reader(state.bytes(), "memory");
    loaded->load(nullptr, reader);
    play_rounds(*posterior, 6, 3);
    play_rounds(*loaded, 6, 3);
    BlockQuery query(5);
    EXPECT_EQ(query.m_by(*loaded), query.m_by(*posterior));
    EXPECT_EQ(loaded->own_drift(nullptr), posterior->own_drift(nullptr));
    StateWriter after;
    StateWriter after_loading;
    posterior->save(after);
    loaded->save(after_loading);
    EXPECT_EQ(after_loading.bytes(), after.bytes()) << posterior->spec().name();
  }
}

TEST_P(ResidentBlocksTest, MemoryDoesNotGrow) {
  for (const Covariance covariance : kBlockForms) {
    const auto posterior = made(covariance);
    play_rounds(*posterior, 0, 1);
    const std::int64_t bytes = posterior->bytes();
#if defined(OLRANK_KERNELS_EMULATED)
    BlockQuery query(5);
    const std::int64_t allocations = emulation::allocations_on_device();
    query.observe_in(*posterior);
    posterior->own_drift(nullptr);
    EXPECT_EQ(emulation::allocations_on_device(), allocations) << posterior->spec().name();
#endif
    play_rounds(*posterior, 1, 8);
    EXPECT_EQ(posterior->bytes(), bytes) << posterior->spec().name();
  }
}

/// The state of `posterior` with wrong roots and the probes of the right ones.
void save_with_wrong_roots(const device::ResidentPosterior& posterior, StateWriter& wrong) {
  StateWriter state;
  posterior.save(state);
  StateReader reader(state.bytes(), "memory");
  wrong.put("device.block_pairs", reader.get_one<std::int64_t>("device.block_pairs"));
  auto roots = reader.get<double>("device.block_roots");
  for (double& number : roots) number *= 1.001;
  wrong.put("device.block_roots", roots);
  wrong.put("device.block_products", reader.get<double>("device.block_products"));
  wrong.put("device.block_energies", reader.get<double>("device.block_energies"));
  wrong.put("device.log_det", reader.get_one<double>("device.log_det"));
}

TEST_P(ResidentBlocksTest, DriftIsTheErrorOfTheRoots) {
  const auto posterior = made(Covariance::kUnitBlocks);
  EXPECT_LT(posterior->own_drift(nullptr), 1e-14);
  play_rounds(*posterior, 0, 12);
  EXPECT_LT(posterior->own_drift(nullptr), 1e-11);
  EXPECT_FALSE(posterior->can_rebuild());
  StateWriter state;
  save_with_wrong_roots(*posterior, state);
  StateReader reader(state.bytes(), "memory");
  posterior->load(nullptr, reader);
  EXPECT_NEAR(posterior->own_drift(nullptr), 1.001 * 1.001 - 1.0, 1e-8);
}

TEST_P(ResidentBlocksTest, MeasuringLeavesTheLatestGramAlone) {
  const auto posterior = made(Covariance::kUnitBlocks);
  const auto measured = made(Covariance::kUnitBlocks);
  play_rounds(*posterior, 0, 3);
  play_rounds(*measured, 0, 3);
  BlockQuery query(6);
  query.observe_in(*posterior);
  query.m_by(*measured);
  measured->own_drift(nullptr);
  query.observe_latest_in(*measured, 0, 3);
  EXPECT_EQ(query.m_by(*measured), query.m_by(*posterior));
}

TEST_P(ResidentBlocksTest, ADriftBeyondTheBoundIsAWarning) {
  auto often = block_spec(Covariance::kUnitBlocks);
  often.checks.every = 3;
  device::WatchedPosterior watched(often, products_->products);
  BlockQuery(7).observe_in(watched);  // checked without a warning
  StateWriter state;
  state.put_text("device.form", "unit-blocks");
  save_with_wrong_roots(*made(Covariance::kUnitBlocks), state);
  state.put("device.unchecked", std::int64_t{0});
  StateReader reader(state.bytes(), "memory");
  watched.load(nullptr, reader);
  const ExpectedWarnings warnings;
  BlockQuery(8).observe_in(watched);
  BlockQuery(9).observe_in(watched);
  EXPECT_EQ(warnings.count("unit-blocks"), 1) << "once";
}

TEST_P(ResidentBlocksTest, LostWidthsAreAnError) {
  device::WatchedPosterior watched(block_spec(Covariance::kLastLayer), products_->products);
  EXPECT_THROW(watched.repair(nullptr), NumericError);
}

OLRANK_KERNEL_TESTS(ResidentBlocksTest);

}  // namespace
}  // namespace olrank
