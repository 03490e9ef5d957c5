#include <algorithm>
#include <cmath>

#include "core/random/rng_stream.h"
#include "cuda/ops/pair_training.h"
#include "tests/cuda/ops/history_fixture.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {
namespace {

OLRANK_KERNEL_TEST_SUITE(PairTrainingKernelTest);

struct Workspace {
  DeviceArray<float> rows, scores, partial;
  DeviceArray<double> losses;

  explicit Workspace(const device::TrainingSizes& sizes)
      : rows(sizes.rows), scores(sizes.scores), partial(sizes.partial), losses(sizes.losses) {}
  device::TrainingWorkspace view() { return {rows, scores, partial, losses}; }
};

TEST_P(PairTrainingKernelTest, IncidenceListsTheTermsOfEachDocumentInOrder) {
  for (const std::int64_t docs : {2, 33, 1500}) {
    for (const std::int64_t count : {0, 1, 32, 700}) {
      std::vector<PairTerm> terms = random_terms(docs, count, 3);
      if (count > 1) terms[1].first = -1;
      TestHistory history(ntk_shape(2, 2, 2), docs, terms);
      std::vector<std::vector<std::int32_t>> expected(docs);
      for (std::int32_t t = 0; t < count; ++t) {
        const PairTerm& term = terms[t];
        if (term.first < 0) continue;
        expected[term.first].push_back(2 * t);
        expected[term.second].push_back(2 * t + 1);
      }
      const auto offsets = history.offsets.to_host();
      const auto ends = history.ends.to_host();
      ASSERT_EQ(offsets[0], 0);
      for (std::size_t doc = 0; doc < expected.size(); ++doc) {
        ASSERT_EQ(offsets[doc + 1] - offsets[doc], static_cast<std::int32_t>(expected[doc].size()));
        ASSERT_EQ(part_of(ends, offsets[doc], offsets[doc + 1] - offsets[doc]), expected[doc]) << doc;
      }
    }
  }
}

// The coins are the same and nothing is rounded otherwise, so there is no tolerance.
TEST_P(PairTrainingKernelTest, PerturbedLabelsMatchCpuToTheBit) {
  constexpr double kNoise = 0.31622776601683794;
  constexpr std::uint32_t kRound = 77;
  constexpr std::int64_t kTerms = 20'003;  // with draws far out
  const std::vector<PairTerm> terms = random_terms(50, kTerms, 8);
  const Given<PhiloxKey> keys = {test_key(1), test_key(2), test_key(3)};
  DeviceArray<double> labels(3 * kTerms);
  device::perturb_labels(nullptr, on_device(terms), kTerms, 3, keys,
                         on_device(std::vector<std::uint32_t>{kRound}), kNoise, labels);
  const auto found = labels.to_host();
  for (std::size_t member = 0; member < keys.size(); ++member) {
    for (std::size_t t = 0; t < terms.size(); ++t) {
      RngStream coins(keys[member], kRound, static_cast<std::uint32_t>(t));
      const double expected = terms[t].labels + kNoise * std::sqrt(terms[t].weight) * coins.normal();
      ASSERT_EQ(found[member * kTerms + t], expected) << member << " " << t;
    }
  }
}

void expect_equal_training(const TrainingCase& one) {
  const NetworkShape& shape = one.shape;
  const double data_scale = 0.5;
  TrainingWorld world(one);
  const std::int64_t p = world.p;
  DeviceArray<float> theta = on_device(world.first);
  DeviceArray<double> gradient(one.members * p), losses(one.members);
  Workspace workspace(device::training_sizes(shape, one.members, one.docs, world.history.count()));
  const device::NetworkStack stack{.shape = shape, .theta = theta, .members = one.members};
  const device::StackedObjective objective = world.objective(data_scale);
  DefaultProducts on;
  device::forward_history(on.products, stack, world.view(), workspace.view());
  device::pair_losses(nullptr, stack, world.view(), objective, workspace.view(), losses);
  device::pair_gradients(on.products, stack, world.view(), objective, workspace.view(),
                         {gradient, theta, world.steps});

  for (std::int64_t member = 0; member < one.members; ++member) {
    ExecutionContext context;
    const auto own_theta = part_of(world.first, member * p, p);
    std::vector<double> expected(p);
    const double loss =
        pair_loss_gradient(context, shape, own_theta, world.matrix(), world.terms_of(member),
                           world.objective_of(data_scale, member), expected);
    // Scores in float32 are off by some 1e-6 of their terms, whichever way they are summed.
    EXPECT_NEAR(losses.to_host()[member], loss, 2e-5 * (1.0 + std::abs(loss)));
    const auto found = part_of(gradient.to_host(), member * p, p);
    EXPECT_TRUE(all_near(found, expected, 2e-5 * (1.0 + largest_of(expected)), 0.0))
        << "depth " << shape.depth << ", " << one.docs << " docs";
    std::vector<float> moved;
    for (std::size_t k = 0; k < found.size(); ++k)
      moved.push_back(static_cast<float>(double{own_theta[k]} - world.steps[member] * found[k]));
    // To a rounding: the GPU may fuse the product into the difference.
    EXPECT_TRUE(all_near(part_of(theta.to_host(), member * p, p), moved, 1e-9, 1e-7));
  }
}

TEST_P(PairTrainingKernelTest, LossesGradientsAndStepsMatchCpu) {
  for (const NetworkShape& shape : test_shapes()) expect_equal_training({shape, 23, 60});
  for (const std::int64_t docs : {0, 1, 2, 31, 32, 33, 200}) {
    expect_equal_training({ntk_shape(5, 6, 2), docs, docs == 2 ? 1 : 50});
  }
  expect_equal_training({standard_shape(6, 10, 3), 40, 90, 3, true});
  // Many parts: those of one member are a batch, and else members are.
  expect_equal_training({standard_shape(18, 20, 2), 1400, 2500});
  expect_equal_training({ntk_shape(18, 20, 2), 1400, 2500, 3, true});
}

TEST(MultiplierTest, TheLibraryTakesQueriesOfWideOrDeepNetworks) {
  EXPECT_FALSE(device::library_multiplies(ntk_shape(136, 100, 2)));
  EXPECT_FALSE(device::library_multiplies(ntk_shape(136, 254, 2)));
  EXPECT_TRUE(device::library_multiplies(ntk_shape(136, 256, 2)));
  EXPECT_TRUE(device::library_multiplies(ntk_shape(136, 100, 3)));
}

// Sums are cut for all members, so that one by itself has the bits it has among the others.
TEST_P(PairTrainingKernelTest, AMemberHasTheSameBitsInAnyStack) {
  constexpr std::int64_t kMembers = 10;
  for (const auto& [shape, docs] :
       {std::pair{ntk_shape(136, 100, 2), std::int64_t{200}}, {ntk_shape(23, 14, 2), std::int64_t{700}}}) {
    const std::int64_t p = shape.parameters();
    TestHistory history(shape, docs, random_terms(docs, 300, 64));
    const auto theta = on_device(stacked_theta(shape, kMembers, 61));
    Workspace workspace(device::training_sizes(shape, kMembers, docs, history.count()));
    const auto gradients = [&](std::int64_t first, std::int64_t members) {
      DeviceArray<double> gradient(members * p);
      const device::NetworkStack stack{shape, theta.data() + first * p, members, kMembers};
      DefaultProducts on;
      device::forward_history(on.products, stack, history.view(), workspace.view());
      device::pair_gradients(on.products, stack, history.view(), {}, workspace.view(), {gradient});
      return gradient.to_host();
    };
    const auto together = gradients(0, kMembers);
    for (const std::int64_t member : {0, 7}) {
      EXPECT_TRUE(gradients(member, 1) == part_of(together, member * p, p)) << member;
    }
  }
}

}  // namespace
}  // namespace olrank
