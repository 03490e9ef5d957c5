#include "models/posterior/block_posterior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "models/posterior/posterior_memory.h"
#include "tests/models/posterior/posterior_oracle.h"
#include "tests/support/expected_warnings.h"

namespace olrank {
namespace {

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
WideMatrix in_blocks(const NetworkShape& shape, Covariance structure, WideMatrix a) {
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
        PosteriorRounds history(shape, 53);
        PosteriorOracle oracle(shape, lambda, 0.25);
        PosteriorSpec spec = posterior_spec(shape, CovarianceForm::kAuto, lambda, 0.25);
        spec.covariance = structure;
        const auto blocks = make_posterior(spec);
        EXPECT_EQ(blocks->spec().name(), name_of(structure));
        const std::int64_t bytes = blocks->bytes();
        for (int round = 0; round < 40; ++round) {
          const PosteriorRound made = history.round(5);
          oracle.observe(made);
          blocks->observe(context, view_of(shape, made.factors), made.pairs);
          if (round % 20 != 19) continue;
          const std::vector<float> docs = history.docs(33, 400);
          const PosteriorOracle known(shape, lambda, 0.25, in_blocks(shape, structure, oracle.a()));
          const double error =
              largest_relative_error(posterior_widths(*blocks, context, shape, docs), known.width_sq(docs));
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
  PosteriorRounds history(shape, 54);
  PosteriorSpec spec = posterior_spec(shape, CovarianceForm::kDual, 0.1, 1.0);
  const auto full = make_posterior(spec);
  spec.covariance = Covariance::kUnitBlocks;
  const auto blocks = make_posterior(spec);
  const PosteriorRound made = history.round(40);
  for (Posterior* posterior : {full.get(), blocks.get()})
    posterior->observe(context, view_of(shape, made.factors), made.pairs);
  EXPECT_NEAR(blocks->log_det(), full->log_det(), 1e-9 * full->log_det());
  const std::vector<double> expected = posterior_widths(*full, context, shape, made.factors);
  const std::vector<double> found = posterior_widths(*blocks, context, shape, made.factors);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9 * expected[i]);
}

TEST(PosteriorTest, BlocksNeedTheirMemory) {
  PosteriorSpec spec = posterior_spec(ntk_shape(100, 20, 2), CovarianceForm::kAuto, 1.0, 1.0);
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

// A root that is wrong by a thousandth in one entry of one block.
TEST(PosteriorTest, DriftOfBlocksSeesASpoiltRoot) {
  const NetworkShape shape = ntk_shape(12, 10, 3);
  const PosteriorSpec spec =
      posterior_spec(shape, PosteriorVariant{Covariance::kUnitBlocks, CovarianceForm::kAuto});
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

}  // namespace
}  // namespace olrank
