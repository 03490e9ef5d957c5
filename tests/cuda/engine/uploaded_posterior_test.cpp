// Covariances on a device of gradients that no network there computes, against those of the CPU.
#include "cuda/engine/uploaded_posterior.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "models/posterior/posterior_on_device.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

class UploadedPosteriorTest : public KernelTest {};

constexpr Covariance kStructures[] = {Covariance::kFull, Covariance::kDiagonalOfInverse,
                                      Covariance::kDiagonal, Covariance::kInducing};

PosteriorSpec uploaded_spec(const TangentShape& shape, Covariance covariance,
                            CovarianceForm form = CovarianceForm::kDual) {
  PosteriorSpec spec;
  spec.shape = shape;
  spec.covariance = covariance;
  spec.form = form;
  spec.budget = 6;
  spec.lambda = 0.4;
  spec.scale = 0.125;
  return spec;
}

std::unique_ptr<Posterior> on_device_of(const PosteriorSpec& spec) {
  return std::make_unique<PosteriorOnDevice>(spec, FormPolicy::Room{}, device::make_posterior(0, spec));
}

/// The documents of a round with their pairs.
struct UploadedRound {
  std::vector<float> factors;
  std::vector<PreferencePair> pairs;

  UploadedRound(const TangentShape& shape, std::int64_t docs, std::int64_t count, std::uint64_t seed)
      : factors(random_factors(shape, docs, seed)) {
    for (std::int64_t s = 0; s < count; ++s)
      pairs.push_back(
          {static_cast<std::int32_t>((5 * s + 1) % docs), static_cast<std::int32_t>((7 * s + 2) % docs)});
  }
};

std::vector<double> widths_by(Posterior& posterior, const TangentShape& shape,
                              const std::vector<float>& factors) {
  ExecutionContext context;
  const TangentFactors docs = view_of(shape, factors);
  std::vector<double> width_sq(docs.docs * docs.docs);
  posterior.width_sq(context, docs, width_sq);
  return width_sq;
}

/// Widths in double, to rounding of the largest one.
void expect_same_widths(Posterior& found, Posterior& expected, const TangentShape& shape,
                        const std::vector<float>& factors) {
  const std::vector<double> on_cpu = widths_by(expected, shape, factors);
  const double largest = on_cpu.empty() ? 0.0 : *std::max_element(on_cpu.begin(), on_cpu.end());
  EXPECT_TRUE(all_near(widths_by(found, shape, factors), on_cpu, 1e-11 * largest, 1e-9))
      << expected.spec().name() << ", " << shape.parameters() << " parameters";
}

void play_both(const PosteriorSpec& spec) {
  const auto found = on_device_of(spec);
  const auto expected = make_posterior(spec);
  ExecutionContext context;
  std::uint64_t seed = 40;
  // More pairs at once than the CPU's forms take.
  for (const std::int64_t count : {0, 1, 3, 31, 33, 70, 2}) {
    const std::int64_t docs = count < 2 ? count + 1 : std::min<std::int64_t>(count, 33);
    const UploadedRound round(spec.shape, docs, count, ++seed);
    const TangentFactors view = view_of(spec.shape, round.factors);
    expect_same_widths(*found, *expected, spec.shape, round.factors);
    found->observe(context, view, round.pairs);
    expected->observe(context, view, round.pairs);
    EXPECT_EQ(found->pairs(), expected->pairs());
    EXPECT_NEAR(found->log_det(), expected->log_det(), 1e-9 * (1.0 + expected->log_det()));
  }
  expect_same_widths(*found, *expected, spec.shape, random_factors(spec.shape, 31, 90));
  expect_same_widths(*found, *expected, spec.shape, {});
  EXPECT_EQ(found->spec().name(), expected->spec().name());
  EXPECT_LT(found->drift(context), 1e-9);
}

TEST_P(UploadedPosteriorTest, MatchesTheCpuInEachRound) {
  for (const TangentShape& shape : module_shapes()) {
    for (const Covariance covariance : kStructures) play_both(uploaded_spec(shape, covariance));
    play_both(uploaded_spec(shape, Covariance::kFull, CovarianceForm::kPrimal));
  }
  play_both(uploaded_spec(ntk_shape(5, 6, 2), Covariance::kFull));
}

TEST_P(UploadedPosteriorTest, ALoadedOneContinuesToTheSameBits) {
  ExecutionContext context;
  const TangentShape shape = module_shapes()[1];
  for (const Covariance covariance : kStructures) {
    const PosteriorSpec spec = uploaded_spec(shape, covariance);
    const auto whole = on_device_of(spec);
    const auto play = [&](Posterior& posterior, std::uint64_t first, std::uint64_t count) {
      std::vector<double> all;
      for (std::uint64_t number = first; number < first + count; ++number) {
        const UploadedRound round(shape, 9, 4, 50 + number);
        const std::vector<double> widths = widths_by(posterior, shape, round.factors);
        all.insert(all.end(), widths.begin(), widths.end());
        posterior.observe(context, view_of(shape, round.factors), round.pairs);
      }
      return all;
    };
    play(*whole, 0, 5);
    StateWriter state;
    whole->save(state);
    const auto resumed = on_device_of(spec);
    play(*resumed, 20, 2);  // to be overwritten
    StateReader reader(state.bytes(), "memory");
    resumed->load(reader);
    EXPECT_EQ(resumed->log_det(), whole->log_det());
    EXPECT_EQ(play(*resumed, 5, 4), play(*whole, 5, 4)) << whole->spec().name();
    StateWriter one;
    StateWriter other;
    whole->save(one);
    resumed->save(other);
    EXPECT_EQ(one.bytes(), other.bytes()) << whole->spec().name();
  }
}

TEST_P(UploadedPosteriorTest, ObservesDocumentsThatItHasNotMeasured) {
  ExecutionContext context;
  const TangentShape shape = module_shapes()[0];
  for (const Covariance covariance : kStructures) {
    const PosteriorSpec spec = uploaded_spec(shape, covariance);
    const auto found = on_device_of(spec);
    const auto expected = make_posterior(spec);
    for (const std::uint64_t seed : {60, 61, 62}) {
      const UploadedRound round(shape, 9, 4, seed);
      // Other documents in between, as many.
      widths_by(*found, shape, random_factors(shape, 9, seed + 10));
      found->observe(context, view_of(shape, round.factors), round.pairs);
      found->observe(context, view_of(shape, round.factors), round.pairs);
      for (int time = 0; time < 2; ++time)
        expected->observe(context, view_of(shape, round.factors), round.pairs);
    }
    expect_same_widths(*found, *expected, shape, random_factors(shape, 12, 5));
  }
}

TEST_P(UploadedPosteriorTest, BecomesPrimalWhereTheCpuDoes) {
  ExecutionContext context;
  const TangentShape shape = module_shapes()[2];
  const PosteriorSpec spec = uploaded_spec(shape, Covariance::kFull, CovarianceForm::kAuto);
  const auto found = on_device_of(spec);
  const auto expected = make_posterior(spec);
  bool switched = false;
  for (std::uint64_t number = 0; number < 40; ++number) {
    const UploadedRound round(shape, 9, 4, 70 + number);
    expect_same_widths(*found, *expected, shape, round.factors);
    found->observe(context, view_of(shape, round.factors), round.pairs);
    expected->observe(context, view_of(shape, round.factors), round.pairs);
    ASSERT_EQ(found->spec().name(), expected->spec().name()) << number;
    switched |= found->spec().name() == "primal";
  }
  EXPECT_TRUE(switched);
}

TEST_P(UploadedPosteriorTest, RefusesMoreLayersThanAKernelTakes) {
  const std::vector<LayerSize> sizes(33, LayerSize{2, 3, true});
  const PosteriorSpec spec = uploaded_spec(shape_of_layers(sizes), Covariance::kFull);
  try {
    on_device_of(spec);
    FAIL() << "33 layers";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "A scoring function on a device has at most 32 layers of parameters, not 33: choose fewer, or "
        "device = cpu.");
  }
}

TEST_P(UploadedPosteriorTest, HasNoFrozenCopy) {
  EXPECT_EQ(on_device_of(uploaded_spec(module_shapes()[0], Covariance::kFull))->freeze(), nullptr);
}

OLRANK_KERNEL_TESTS(UploadedPosteriorTest);

}  // namespace
}  // namespace olrank
