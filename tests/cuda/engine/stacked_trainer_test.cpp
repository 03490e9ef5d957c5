#include "cuda/engine/resident_trainer.h"

#include <numeric>
#include <vector>

#include "core/error.h"
#include "cuda/engine/resident_history.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

OLRANK_KERNEL_TEST_SUITE(StackedTrainerTest);

constexpr std::int64_t kHistoryDocs = 90;
constexpr std::int64_t kHistoryPairs = 120;

const NetworkShape& shape() {
  static const NetworkShape made = ntk_shape(24, 40, 2);
  return made;
}

/// A short θ, so that losses fall.
std::vector<float> short_theta(const NetworkShape& of) {
  std::vector<float> theta = random_theta(of, 6);
  for (float& number : theta) number *= 0.1F;
  return theta;
}

DeviceNetworkSpec spec_of(const NetworkShape& of, const std::vector<float>& first, std::int64_t steps,
                          TrainingKernel kernel) {
  DeviceNetworkSpec spec;
  spec.shape = of;
  spec.first = first;
  spec.training.steps = steps;
  spec.training.kernel = kernel;
  return spec;
}

/// A trainer with its history.
struct TrainerWorld {
  device::OwnedStream stream;
  DeviceArray<float> features, theta;
  device::ProductPlans plans;
  device::Products products{plans, stream.get()};
  std::unique_ptr<device::ResidentTrainer> trainer;
  device::ResidentHistory history;

  TrainerWorld(const DeviceNetworkSpec& spec, const std::vector<float>& first,
               const std::vector<float>& of_docs, std::int64_t docs_a_round, std::int64_t replay = 0)
      : features(of_docs),
        theta(first),
        trainer(device::make_stacked_trainer(spec, theta, products)),
        history(spec.shape.inputs, device::ResidentHistory::Keeps::kTerms, docs_a_round, replay) {}

  void play(const DeviceUpdate& update) {
    history.add(stream.get(), update, features);
    trainer->train(history);
    stream.wait();
  }
};

DeviceUpdate update_of(std::uint32_t round, const DeviceQuery& query, std::int64_t observed,
                       std::span<const std::int64_t> new_docs, std::span<const DeviceUpdate::Term> terms) {
  DeviceUpdate update;
  update.round = round;
  update.query = query;
  update.observed = observed;
  update.new_docs = new_docs;
  update.terms = terms;
  return update;
}

struct Trained {
  std::vector<float> theta;
  double began = 0.0;
  double ended = 0.0;
};

/// One training on a history of random pairs.
Trained train(const std::vector<float>& first, TrainingKernel kernel, const NetworkShape& of = shape()) {
  std::vector<DeviceUpdate::Term> terms;
  for (const PairTerm& term : random_terms(kHistoryDocs, kHistoryPairs))
    terms.push_back({static_cast<std::int32_t>(terms.size()), {term.first, term.second, 1.0, 1.0}});
  std::vector<std::int64_t> numbers(kHistoryDocs);
  std::iota(numbers.begin(), numbers.end(), 0);

  DeviceNetworkSpec spec = spec_of(of, first, 4, kernel);
  spec.training.prior_weight = 0.1;
  TrainerWorld world(spec, first, random_numbers(kHistoryDocs * of.inputs, 3), kHistoryDocs);
  world.play(update_of(1, {0, kHistoryDocs}, kHistoryPairs, numbers, terms));
  std::vector<double> outcome(device::ResidentTrainer::kOutcomes);
  device::copy_to_host(world.trainer->outcome(), std::span(outcome));
  return {world.theta.to_host(), outcome[1], outcome[2]};
}

// Both decide alike, and their float32 sums over documents differ in order only.
TEST_P(StackedTrainerTest, OneKernelTrainsAsTheGraphDoes) {
  const std::vector<float> first = short_theta(shape());
  const Trained graph = train(first, TrainingKernel::kRecorded);
  const Trained kernel = train(first, TrainingKernel::kPersistent);
  EXPECT_TRUE(all_near(kernel.theta, graph.theta, 1e-6, 1e-5));
  EXPECT_NEAR(kernel.began, graph.began, 1e-6 * graph.began);
  EXPECT_NEAR(kernel.ended, graph.ended, 1e-5 * graph.ended);
  EXPECT_TRUE(train(first, TrainingKernel::kAuto).theta == kernel.theta);
}

/// The gradient at the reference, of the history as it is after a round of one own pair and one drawn one.
/// A document of the drawn one is `drawn`.
std::vector<double> gradient_after_replay(TrainingKernel kernel, std::int64_t drawn) {
  constexpr std::int64_t kDocs = 5;
  std::vector<float> features = random_numbers(kDocs * shape().inputs, 3);
  for (std::int64_t k = 0; k < shape().inputs; ++k) features[4 * shape().inputs + k] = 3e38F;
  const std::vector<float> first = short_theta(shape());
  DeviceNetworkSpec spec = spec_of(shape(), first, 2, kernel);
  spec.training.retraining = {.retrain = Retrain::kGrowth, .replay_steps = 1, .replay = 8};
  TrainerWorld world(spec, first, features, kDocs, 8);
  const std::vector<std::int64_t> numbers = {0, 1, 2, 3};
  const std::vector<DeviceUpdate::Term> terms = {{0, {0, 1, 1.0, 1.0}}, {1, {2, 3, 2.0, 1.0}}};
  world.play(update_of(1, {0, kDocs}, 3, numbers, terms));
  const std::vector<std::int64_t> sampled = {0, 1, 2, drawn};
  const std::vector<PairTerm> sample_terms = {{0, 1, 0.0, 0.0}, {2, 3, 0.0, 0.0}};
  const std::vector<SampledTerm> sources = {
      {.term = 0, .own_weight = 1.0, .own_labels = 1.0, .others_weight = 1.0},
      {.term = 1, .drawn_weight = 2.0, .drawn_labels = 1.0, .others_weight = 2.0}};
  DeviceUpdate update = update_of(2, {0, kDocs}, 4, {}, std::span(terms).first(1));
  update.extent = TrainingExtent::kSample;
  update.sample = {sampled, sample_terms, sources};
  world.play(update);
  StateReader reader(state_of(*world.trainer), "memory");
  reader.skip_to("device.reference_gradient");
  std::vector<double> gradient(shape().parameters());
  reader.get_into("device.reference_gradient", std::span(gradient));
  return gradient;
}

// A drawn document whose scores overflow has no part in the gradient of the round's own pairs.
TEST_P(StackedTrainerTest, OwnPairsCountWhereADrawnDocumentOverflows) {
  for (const TrainingKernel kernel : {TrainingKernel::kRecorded, TrainingKernel::kPersistent}) {
    const std::vector<double> expected = gradient_after_replay(kernel, 3);
    EXPECT_EQ(gradient_after_replay(kernel, 4), expected);
  }
}

#if defined(OLRANK_KERNELS_EMULATED)

// The card's properties choose: what fits a card is trained in the one kernel with an H100's bits, and
// every other network by recorded products.
TEST_P(StackedTrainerTest, EveryCardTrainsInTheFormThatFitsIt) {
  const NetworkShape wide = ntk_shape(400, 60, 2);  // its weights alone take 103 KB
  const std::vector<float> first = short_theta(wide);
  const auto kernel = train(first, TrainingKernel::kPersistent, wide).theta;
  const auto graph = train(first, TrainingKernel::kRecorded, wide).theta;
  EXPECT_FALSE(graph == kernel);
  emulation::machine.card = emulation::kAmpere;
  EXPECT_TRUE(train(first, TrainingKernel::kAuto, wide).theta == kernel);
  emulation::machine.card = emulation::kAda;
  EXPECT_TRUE(train(first, TrainingKernel::kAuto, wide).theta == graph);
  EXPECT_THROW(train(first, TrainingKernel::kPersistent, wide), InvalidArgument);
  emulation::machine.card = emulation::kHopper;
}

// Most rounds replay a graph; a history that has grown replaces its work and makes no other one.
TEST_P(StackedTrainerTest, AGrownHistoryUpdatesTheGraph) {
  constexpr std::int64_t kRounds = 8;
  constexpr std::int32_t kNewDocs = 16;  // a bucket is full after every other round
  const std::vector<float> first = short_theta(shape());
  TrainerWorld world(spec_of(shape(), first, 2, TrainingKernel::kRecorded), first,
                     random_numbers(kRounds * kNewDocs * shape().inputs, 3), kNewDocs);
  const std::int64_t before = emulation::counts.graphs_made;
  for (std::int32_t round = 0; round < kRounds; ++round) {
    const std::int32_t doc = round * kNewDocs;
    std::vector<std::int64_t> numbers(kNewDocs);
    std::iota(numbers.begin(), numbers.end(), doc);
    const DeviceUpdate::Term term{round, {doc, doc + 1, 1.0, 1.0}};
    world.play(update_of(static_cast<std::uint32_t>(round + 1), {doc, kNewDocs}, round + 1, numbers,
                         std::span(&term, 1)));
  }
  EXPECT_EQ(emulation::counts.graphs_made, before + 1);
  EXPECT_NE(world.theta.to_host(), first);
}

#endif

}  // namespace
}  // namespace olrank
