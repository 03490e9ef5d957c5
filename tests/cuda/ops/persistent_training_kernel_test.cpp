#include "cuda/ops/persistent_training.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/ops/optimizer_step.h"
#include "tests/cuda/ops/history_fixture.h"

namespace olrank {
namespace {

constexpr std::int64_t kPersistentSteps = 4;

struct PersistentResult {
  std::vector<float> theta;
  std::vector<double> began;
  std::vector<double> ended;

  friend bool operator==(const PersistentResult&, const PersistentResult&) = default;
};

std::vector<StepRates> all_rates() {
  std::vector<StepRates> rates;
  for (std::int64_t number = 1; number <= kPersistentSteps; ++number)
    rates.push_back(step_rates(number, 0.0));
  return rates;
}

struct PersistentWorld : TrainingWorld {
  explicit PersistentWorld(const TrainingCase& of) : TrainingWorld(of) {
    for (float& number : first) number *= 0.3F;
  }

  /// Members [begin, begin + count), as a stack of their own.
  PersistentResult on_device_for(std::int64_t begin, std::int64_t count, bool only_gradient = false) {
    auto theta = on_device(part_of(first, begin * p, count * p));
    const auto rates = on_device(all_rates());
    const device::PersistentSizes sizes =
        device::persistent_sizes(what.shape, what.members, what.docs, history.count());
    DeviceArray<float> scores(sizes.scores), partial(sizes.partial);
    DeviceArray<std::uint8_t> gates(sizes.gates);
    DeviceArray<double> slopes(sizes.slopes), losses(sizes.losses), gradient(count * p);
    DeviceArray<double> position(count * p), first_moment(count * p), second_moment(count * p);
    DeviceArray<double> began(count), ended(count);
    device::PersistentTraining training;
    training.stack = {what.shape, theta, count, what.members};
    training.history = view(begin);
    training.objective = objective(1.0, begin);
    training.optimizer = what.optimizer;
    training.steps = kPersistentSteps;
    training.step = steps + begin;
    training.rates = rates;
    training.state = {position, first_moment, second_moment};
    training.workspace = {scores, partial, gates, slopes, losses};
    training.theta = theta;
    training.began = began;
    training.ended = ended;
    if (only_gradient) {
      training.gradient = gradient;
      device::train_persistently(nullptr, training);
      return {theta.to_host(), gradient.to_host(), {}};
    }
    device::begin_training(nullptr, count * p, theta, training.state);
    device::train_persistently(nullptr, training);
    return {theta.to_host(), began.to_host(), ended.to_host()};
  }

  PersistentResult on_device_for_all() { return on_device_for(0, what.members); }
};

/// Holds the results of the CPU, which trains the members one after another.
struct ReferenceTraining {
  PersistentResult result;
  std::vector<double> gradient;  // the first of all members
};

ReferenceTraining train_on_cpu(const PersistentWorld& world) {
  const TrainingCase& what = world.what;
  const std::int64_t p = world.p;
  ReferenceTraining found;
  for (std::int64_t member = 0; member < what.members; ++member) {
    ExecutionContext context;
    const std::vector<PairTerm> terms = world.terms_of(member);
    const FeatureMatrix docs = world.matrix();
    std::vector<float> theta = part_of(world.first, member * p, p);
    const PairObjective objective = world.objective_of(1.0, member);
    found.result.began.push_back(pair_loss(context, what.shape, theta, docs, terms, objective));
    std::vector<double> position(theta.begin(), theta.end());
    std::vector<double> first(p);
    std::vector<double> second(p);
    for (std::int64_t number = 1; number <= kPersistentSteps; ++number) {
      std::vector<double> gradient(p);
      pair_gradient(context, what.shape, theta, docs, terms, objective, gradient);
      if (number == 1) found.gradient.insert(found.gradient.end(), gradient.begin(), gradient.end());
      const double step = world.steps[member];
      if (what.optimizer == Optimizer::kGradientDescent) {
        gradient_descent_step(step, gradient, theta);
      } else if (what.optimizer == Optimizer::kNesterov) {
        nesterov_step(step, gradient, first, position, theta);
      } else {
        adam_step(number, step, 0.0, gradient, {first, second}, position, theta);
      }
    }
    found.result.theta.insert(found.result.theta.end(), theta.begin(), theta.end());
    found.result.ended.push_back(pair_loss(context, what.shape, theta, docs, terms, objective));
  }
  return found;
}

void expect_equal_results(const PersistentResult& found, const PersistentResult& expected) {
  // A float32 sum over documents is off by some 1e-6 of its terms, and steps carry that on.
  EXPECT_TRUE(all_near(found.theta, expected.theta, 2e-5 * (1.0 + largest_of(expected.theta)), 0.0));
  EXPECT_TRUE(all_near(found.began, expected.began, 2e-5, 2e-5));
  EXPECT_TRUE(all_near(found.ended, expected.ended, 2e-5, 2e-5));
}

void expect_same_training(const TrainingCase& what) {
  SCOPED_TRACE(testing::Message() << "d " << what.shape.inputs << ", m " << what.shape.width << ", "
                                  << what.docs << " docs, " << what.members << " members");
  PersistentWorld world(what);
  const ReferenceTraining expected = train_on_cpu(world);
  const PersistentResult found = world.on_device_for_all();
  expect_equal_results(found, expected.result);
  EXPECT_NE(found.theta, world.first);
  const PersistentResult only_gradient = world.on_device_for(0, what.members, true);
  EXPECT_EQ(only_gradient.theta, world.first);
  EXPECT_TRUE(
      all_near(only_gradient.began, expected.gradient, 2e-5 * (1.0 + largest_of(expected.gradient)), 0.0));
}

class PersistentTrainingKernelTest : public KernelTest {
 protected:
#if defined(OLRANK_KERNELS_EMULATED)
  void TearDown() override {
    emulation::machine.blocks_at_once = 3;
    emulation::machine.card = emulation::kHopper;
  }
#endif
};

// Shared memory that a block can have: of an H100 or H200, of an A100, and of cards for workstations.
constexpr std::size_t kOfHopper = 227 * 1024;
constexpr std::size_t kOfAmpere = 163 * 1024;
constexpr std::size_t kOfAda = 99 * 1024;

device::TrainingParts parts_at(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                               std::size_t most = kOfHopper) {
  return device::training_parts(shape, members, docs, most);
}

// A multiprocessor keeps its documents: 16 a block use the whole card for a short history, and the history
// of the benchmark's 10,000 pairs is one wave, too.
TEST(TrainingPartsTest, PartsOfThePapersNetwork) {
  struct Row {
    std::int64_t docs;
    std::int64_t of_part;
    std::int64_t parts;
  };
  for (const Row& row : {Row{2'000, 16, 125}, {10'000, 80, 125}, {20'000, 160, 125}, {20'080, 160, 126}}) {
    const device::TrainingParts parts = parts_at(ntk_shape(136, 100, 2), 1, row.docs);
    EXPECT_EQ(parts.docs, row.of_part);
    EXPECT_EQ(parts.parts, row.parts);
    EXPECT_EQ(parts.doc_tiles, row.of_part / 16);
  }
}

// By the model of a part's time, 8 + doc_tiles, a step never takes less for more documents, and nowhere
// much more than for one less: the whole card's second wave is the largest jump.
TEST(TrainingPartsTest, AStepGrowsWithItsDocuments) {
  const NetworkShape shape = ntk_shape(136, 100, 2);
  const auto time_of = [&](std::int64_t docs) {
    const device::TrainingParts parts = parts_at(shape, 1, docs);
    return (parts.parts + device::kAllBlocks - 1) / device::kAllBlocks * (8 + parts.doc_tiles);
  };
  constexpr std::int64_t kOneWave = device::kAllBlocks * 12 * 16;
  std::int64_t before = time_of(1);
  for (std::int64_t docs = 2; docs <= 40'000; ++docs) {
    const std::int64_t time = time_of(docs);
    ASSERT_GE(time, before) << docs;
    const double most = docs == kOneWave + 1 ? 1.5 : 1.12;
    ASSERT_LE(static_cast<double>(time), most * static_cast<double>(before)) << docs;
    before = time;
  }
}

// Where trials share a card, a block has several parts, which it takes together.
TEST(TrainingPartsTest, ABlockKeepsSeveralPartsWhereItHasThem) {
  const device::TrainingParts parts = parts_at(ntk_shape(136, 100, 2), 1, 2'000);
  EXPECT_EQ(parts.parts, 125);
  EXPECT_EQ(parts.most_at_once, 12);
  EXPECT_EQ(parts.at_once(1, device::kAllBlocks), 1);
  EXPECT_EQ(parts.at_once(1, device::kAllBlocks / 16), 8);
  EXPECT_EQ(parts.at_once(10, device::kAllBlocks), 10);
}

/// Where docs/evidence/GPU-RECORD.md says that 85 % of the multiprocessors of an H100 have work.
bool is_well_used(std::int64_t n) {
  constexpr std::int64_t kRanges[][2] = {{897, 1'056},   {1'793, 2'112}, {2'689, 3'168},
                                         {3'585, 4'224}, {4'481, 5'280}, {5'377, 25'000}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [n](const auto& range) { return n >= range[0] && n <= range[1]; });
}

// Whole parts in whole waves leave multiprocessors without work. On average over n these are at most a
// tenth where parts may have seven documents a thread or more; a short history has parts of the least size.
TEST(TrainingPartsTest, HistoriesOccupyTheCardAndFitItsSharedMemory) {
  const NetworkShape shape = ntk_shape(136, 100, 2);
  struct Kind {
    std::size_t most;
    int doc_tiles;  // at most
    double least;
    double average;
  };
  constexpr std::int64_t kMultiprocessors = 132;
  for (const Kind& kind :
       {Kind{kOfHopper, 12, 0.8, 0.9}, Kind{kOfAmpere, 8, 0.8, 0.9}, Kind{kOfAda, 4, 0.65, 0.85}}) {
    double least = 1.0;
    double sum = 0.0;
    int most_tiles = 0;
    std::int64_t counted = 0;
    for (std::int64_t n = 1; n <= 25'000; ++n) {
      const device::TrainingParts parts = parts_at(shape, 1, 2 * n, kind.most);
      ASSERT_GT(parts.shared_bytes, 0U) << n;
      ASSERT_LE(parts.shared_bytes, kind.most) << n;
      ASSERT_GE(parts.parts * parts.docs, 2 * n);
      most_tiles = std::max(most_tiles, parts.doc_tiles);
      const std::int64_t waves = (parts.parts + kMultiprocessors - 1) / kMultiprocessors;
      const double share = static_cast<double>(parts.parts) / static_cast<double>(waves * kMultiprocessors);
      if (2 * n <= kMultiprocessors * 16) {
        EXPECT_EQ(parts.doc_tiles, 1) << n;
      }
      if (kind.most == kOfHopper) {
        EXPECT_EQ(share >= 0.85, is_well_used(n)) << n;
      }
      if (n < 5'000) continue;
      least = std::min(least, share);
      sum += share;
      ++counted;
    }
    EXPECT_GE(least, kind.least) << kind.most;
    EXPECT_GE(sum / static_cast<double>(counted), kind.average) << kind.most;
    EXPECT_EQ(most_tiles, kind.doc_tiles);
  }
}

TEST(TrainingPartsTest, PartsFitSharedMemoryOrThereAreNone) {
  for (const std::int64_t inputs : {1, 46, 136, 220, 519, 700, 5'000}) {
    for (const std::int64_t width : {2, 64, 100, 128, 200, 254, 256}) {
      const device::TrainingParts parts = parts_at(standard_shape(inputs, width, 2), 10, 1'000'000);
      EXPECT_LE(parts.shared_bytes, kOfHopper);
      const bool must_fit = width <= 100 && inputs <= 220;
      const bool cannot_fit = width == 256 || inputs == 5'000;
      EXPECT_FALSE(must_fit && parts.shared_bytes == 0) << inputs << " " << width;
      EXPECT_FALSE(cannot_fit && parts.shared_bytes > 0) << inputs << " " << width;
    }
  }
  EXPECT_EQ(parts_at(ntk_shape(136, 100, 3), 1, 100).shared_bytes, 0U);
  // The limits that docs/evidence/GPU-RECORD.md states.
  EXPECT_GT(parts_at(ntk_shape(472, 100, 2), 10, 100'000).shared_bytes, 0U);
  EXPECT_EQ(parts_at(ntk_shape(473, 100, 2), 10, 100'000).shared_bytes, 0U);
  EXPECT_GT(parts_at(ntk_shape(248, 200, 2), 10, 100'000).shared_bytes, 0U);
  EXPECT_EQ(parts_at(ntk_shape(249, 200, 2), 10, 100'000).shared_bytes, 0U);
}

TEST_P(PersistentTrainingKernelTest, TrainsAsTheCpuDoes) {
  expect_same_training({ntk_shape(5, 6, 2), 23, 60});
  expect_same_training({standard_shape(7, 10, 2), 40, 90, 3, true});
  expect_same_training({ntk_shape(8, 20, 2), 33, 50, 2});
  for (const std::int64_t docs : {1, 2, 31, 32, 200})
    expect_same_training({standard_shape(3, 2, 2), docs, docs == 2 ? 1 : 70});
  expect_same_training({ntk_shape(3, 2, 2), 4, 300});  // a document in more terms than fit shared memory
  for (const Optimizer optimizer : {Optimizer::kNesterov, Optimizer::kAdam}) {
    expect_same_training({ntk_shape(5, 6, 2), 23, 60, 2, false, optimizer});
    expect_same_training({standard_shape(5, 6, 2), 23, 60, 1, true, optimizer});
  }
}

TEST_P(PersistentTrainingKernelTest, EveryTileTrainsAsTheCpuDoes) {
  // Four parts of 33 members are one wave of blocks.
  const bool is_first_order = static_cast<int>(GetParam()) == 0;
  for (const int tiles : is_first_order ? std::vector{2, 3, 5, 12, 19, 20} : std::vector{3, 20}) {
    TrainingCase what{standard_shape(3, 4, 2), std::int64_t{4 * 16} * tiles - 1, 600, 33};
    what.rate = 1e-5;
    EXPECT_EQ(parts_at(what.shape, what.members, what.docs).doc_tiles, tiles);
    expect_same_training(what);
  }
}

// The papers' network, and one whose gradient has more tiles than a block has threads.
TEST_P(PersistentTrainingKernelTest, LargeNetworksTrainAsOnTheCpu) {
  for (const NetworkShape& shape : {ntk_shape(136, 100, 2), standard_shape(139, 128, 2)}) {
    TrainingCase what{shape, 45, 60};
    what.rate = 1e-3;
    expect_same_training(what);
  }
}

/// The slope of the loss as products of matrices in double.
std::vector<double> gradient_in_double(const PersistentWorld& world) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const NetworkShape& shape = world.what.shape;
  const NetworkLayer hidden = shape.layer(0);
  const NetworkLayer output = shape.layer(1);
  const std::vector<double> theta(world.first.begin(), world.first.end());
  const auto part = [&](std::int64_t place, std::int64_t rows, std::int64_t columns) -> Matrix {
    return place < 0 ? Matrix(Matrix::Zero(rows, columns))
                     : Matrix(Eigen::Map<const Matrix>(&theta[place], rows, columns));
  };
  const Matrix x = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
                       world.history.features.data(), world.what.docs, shape.inputs)
                       .cast<double>();
  const Matrix above = part(output.weight, 1, shape.width);
  const Matrix z = (x * part(hidden.weight, shape.width, shape.inputs).transpose()).rowwise() +
                   Eigen::RowVectorXd(part(hidden.bias, 1, shape.width));
  const Matrix h = z.cwiseMax(0.0);
  const Eigen::VectorXd scores = shape.output_scale * (h * above.transpose());  // a bias cancels in pairs
  Eigen::VectorXd deltas = Eigen::VectorXd::Zero(world.what.docs);
  for (const PairTerm& term : world.history.terms) {
    const double slope =
        shape.output_scale *
        pair_term_slope(sigmoid(scores[term.first] - scores[term.second]), term.weight, term.labels);
    deltas[term.first] += slope;
    deltas[term.second] -= slope;
  }
  const Matrix below = (deltas * above).cwiseProduct((z.array() > 0.0).cast<double>().matrix());
  std::vector<double> gradient(theta.size());
  const auto set = [&](std::int64_t place, const Matrix& numbers) {
    if (place >= 0) std::copy(numbers.data(), numbers.data() + numbers.size(), gradient.begin() + place);
  };
  set(hidden.weight, below.transpose() * x);
  set(hidden.bias, below.colwise().sum());
  set(output.weight, deltas.transpose() * h);
  set(output.bias, Matrix::Constant(1, 1, deltas.sum()));
  for (std::size_t k = 0; k < gradient.size(); ++k)
    gradient[k] += prior_slope(PersistentWorld::kPrior, theta[k], double{world.centre[k]});
  return gradient;
}

// Three products of TF32 numbers stand for one of float32; one alone would be off by a thousand times as
// much.
TEST_P(PersistentTrainingKernelTest, GradientsHaveTheErrorsOfFloat32) {
  for (const auto& [shape, docs] : {std::pair{ntk_shape(136, 100, 2), 330},
                                    {standard_shape(46, 64, 2), 700},
                                    {standard_shape(300, 10, 2), 60}}) {
    PersistentWorld world({shape, docs, 2 * docs});
    const std::vector<double> exact = gradient_in_double(world);
    double size = 0.0;
    for (const double slope : exact) size += slope * slope;
    const auto error_of = [&](const std::vector<double>& found) {
      double sum = 0.0;
      for (std::size_t k = 0; k < exact.size(); ++k) sum += std::pow(found[k] - exact[k], 2);
      return std::sqrt(sum / size);
    };
    const double of_float32 = error_of(train_on_cpu(world).gradient);
    const double found = error_of(world.on_device_for(0, 1, true).began);
    EXPECT_GT(of_float32, 1e-9);
    EXPECT_LT(of_float32, 1e-6);
    EXPECT_LE(found, 4.0 * of_float32) << "d " << shape.inputs << ", m " << shape.width << ", " << docs;
  }
}

TEST_P(PersistentTrainingKernelTest, AMemberHasTheSameBitsInAnyStack) {
  PersistentWorld world({ntk_shape(9, 12, 2), 300, 400, 5, true, Optimizer::kNesterov});
  const std::int64_t p = world.what.shape.parameters();
  const PersistentResult together = world.on_device_for_all();
  for (const std::int64_t member : {0, 3}) {
    const PersistentResult alone = world.on_device_for(member, 1);
    EXPECT_TRUE(alone.theta == part_of(together.theta, member * p, p)) << member;
    EXPECT_EQ(alone.began[0], together.began[member]);
    EXPECT_EQ(alone.ended[0], together.ended[member]);
  }
}

#if defined(OLRANK_KERNELS_EMULATED)
TEST_P(PersistentTrainingKernelTest, AnyNumberOfBlocksGivesTheSameBits) {
  PersistentWorld world({standard_shape(6, 12, 2), 300, 400, 2});
  emulation::machine.blocks_at_once = 1;
  const PersistentResult expected = world.on_device_for_all();
  for (const unsigned blocks : {2U, 5U, 9U}) {
    emulation::machine.blocks_at_once = blocks;
    EXPECT_TRUE(world.on_device_for_all() == expected) << blocks;
  }
}

// For the papers' network an A100 holds parts of seven documents a thread, a workstation's card of three.
TEST_P(PersistentTrainingKernelTest, PartsAreAsLargeAsTheCardAllows) {
  for (const emulation::Card& card : {emulation::kAmpere, emulation::kAda}) {
    emulation::machine.card = card;
    EXPECT_TRUE(device::trains_persistently(ntk_shape(136, 100, 2), 1));
    EXPECT_FALSE(device::trains_persistently(ntk_shape(472, 100, 2), 1));
    expect_same_training({standard_shape(3, 4, 2), 200, 70});
  }
  emulation::machine.card = emulation::kHopper;
  EXPECT_TRUE(device::trains_persistently(ntk_shape(472, 100, 2), 1));
}

#endif

OLRANK_KERNEL_TESTS(PersistentTrainingKernelTest);

}  // namespace
}  // namespace olrank
