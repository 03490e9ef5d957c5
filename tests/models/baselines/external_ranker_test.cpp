#include "models/baselines/external_ranker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/online/online_ranker.h"
#include "models/files/model_file.h"
#include "models/neural/network_rankers.h"
#include "models/ranker_factory.h"
#include "models/skeleton/belief.h"
#include "tests/models/small_world.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr std::int64_t kShownByMine = 4;

const SmallWorld& queries_of_mine() {
  static const SmallWorld made(11, 6, 10, 5);
  return made;
}

/// Orders by θ·x and moves θ towards what is clicked.
class Perceptron : public ExternalRanker {
 public:
  explicit Perceptron(const ExternalRankerRequest& request) : theta_(request.features) {
    for (std::size_t k = 0; k < theta_.size(); ++k)
      theta_[k] = static_cast<float>(request.seed) + 0.25F * static_cast<float>(k % 3);
  }

  std::vector<std::int32_t> rank(const ExternalQuery& query) override {
    std::vector<float> scores(query.docs);
    score(query.inputs, query.docs, query.features, scores);
    std::vector<std::int32_t> order(query.docs);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    return order;
  }
  void learn(const ExternalQuery& query, std::span<const std::int32_t> shown,
             std::span<const std::uint8_t> clicks) override {
    for (std::size_t rank = 0; rank < shown.size(); ++rank) {
      const float step = clicks[rank] != 0 ? 0.5F : -0.25F;
      for (std::size_t k = 0; k < theta_.size(); ++k)
        theta_[k] += step * query.inputs[shown[rank] * theta_.size() + k];
    }
  }
  void score(std::span<const float> inputs, std::int64_t docs, std::int64_t features,
             std::span<float> scores) const override {
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < features; ++k) sum += double{theta_[k]} * inputs[doc * features + k];
      scores[doc] = static_cast<float>(sum);
    }
  }
  std::string save() const override {
    return {reinterpret_cast<const char*>(theta_.data()), theta_.size() * sizeof(float)};
  }
  void load(std::string_view state) override {
    if (state.size() != theta_.size() * sizeof(float)) throw std::runtime_error("This is not its state.");
    std::memcpy(theta_.data(), state.data(), state.size());
  }
  std::int64_t parameters() const override { return std::ssize(theta_); }

 private:
  std::vector<float> theta_;
};

/// A ranker that is known as "mine" while this exists.
class RegisteredMine {
 public:
  explicit RegisteredMine(ExternalRankerFactory factory) {
    register_ranker("mine", "of a test", std::move(factory));
  }
  ~RegisteredMine() { unregister_ranker("mine"); }
  RegisteredMine(const RegisteredMine&) = delete;
  RegisteredMine& operator=(const RegisteredMine&) = delete;
};

/// Makes rankers of this class with these arguments.
template <class Mine, class... Args>
ExternalRankerFactory factory_of(Args... args) {
  return [=](const ExternalRankerRequest& request) { return std::make_unique<Mine>(request, args...); };
}

std::unique_ptr<ExternalRanker> make_perceptron(const ExternalRankerRequest& request) {
  return std::make_unique<Perceptron>(request);
}

RankerSettings external_settings() {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kExternal, ProtocolName::kRecommended);
  settings.name = "mine";
  return settings;
}

std::unique_ptr<OnlineRanker> make_mine(const RankerSettings& settings = external_settings()) {
  return make_ranker(settings, queries_of_mine().features(), TrialKeys::of(2, 3, "someone"), kShownByMine);
}

std::vector<std::int32_t> play_mine(OnlineRanker& ranker, RoundContext& context, std::uint32_t round) {
  const QueryDocs query = queries_of_mine().query_of(round);
  const RankedList list = ranker.rank(context, query, round);
  std::vector<std::int32_t> docs(list.docs.begin(), list.docs.end());
  const auto shown = std::span<const std::int32_t>(docs).first(kShownByMine);
  const auto clicks = queries_of_mine().perfect_clicks(query.query, shown);
  EXPECT_TRUE(ranker.learn(context, {round, query, shown, clicks}).pairs.empty());
  return docs;
}

TEST(ExternalRankerTest, IsMadeForItsTrial) {
  ExternalRankerRequest made;
  const RegisteredMine mine([&](const ExternalRankerRequest& request) {
    made = request;
    return make_perceptron(request);
  });
  const auto ranker = make_mine();
  EXPECT_EQ(made.name, "mine");
  EXPECT_EQ(made.features, queries_of_mine().features());
  EXPECT_EQ(made.cutoff, kShownByMine);
  EXPECT_EQ(made.seed, 2U);
  EXPECT_EQ(made.fold, 3U);
  EXPECT_EQ(made.user, TrialKeys::of(2, 3, "someone").click_model);
  EXPECT_EQ(ranker->parameters(), queries_of_mine().features());
  EXPECT_EQ(ranker->freeze(), nullptr);
  EXPECT_NE(why_not_on_device(external_settings()), std::nullopt);
}

TEST(ExternalRankerTest, ContinuesToTheSameBits) {
  const RegisteredMine mine(make_perceptron);
  const auto play = [](OnlineRanker& ranker, std::uint32_t first, std::uint32_t last, int threads) {
    return play_lists(first, last, threads, [&](RoundContext& context, std::uint32_t round) {
      return play_mine(ranker, context, round);
    });
  };
  expect_same_bits([] { return make_mine(); }, play, 20, {10});

  const auto smaller = make_ranker(external_settings(), 2, TrialKeys{}, kShownByMine);
  EXPECT_THROW(load_state(*smaller, state_of(*make_mine())), std::runtime_error);
}

TEST(ExternalRankerTest, DocumentsThatAreLeftOutFollowInTheOrderOfTheData) {
  class Four : public Perceptron {
   public:
    using Perceptron::Perceptron;
    std::vector<std::int32_t> rank(const ExternalQuery&) override { return {7, 1, 9, 2}; }
  };
  const RegisteredMine mine(factory_of<Four>());
  TestContext context;
  EXPECT_EQ(play_mine(*make_mine(), context.round, 1),
            (std::vector<std::int32_t>{7, 1, 9, 2, 0, 3, 4, 5, 6, 8}));
}

/// Returns a list and scores as they are given.
class Wrong : public Perceptron {
 public:
  Wrong(const ExternalRankerRequest& request, std::vector<std::int32_t> list, float third_score)
      : Perceptron(request), list_(std::move(list)), third_score_(third_score) {}
  std::vector<std::int32_t> rank(const ExternalQuery&) override { return list_; }
  void score(std::span<const float>, std::int64_t, std::int64_t, std::span<float> scores) const override {
    for (float& score : scores) score = 1.0F;
    scores[2] = third_score_;
  }

 private:
  std::vector<std::int32_t> list_;
  float third_score_;
};

std::string refused_by(ExternalRankerFactory factory) {
  const RegisteredMine mine(std::move(factory));
  TestContext context;
  return message_of<InvalidArgument>(
      [&] { make_mine()->rank(context.round, queries_of_mine().query(0), 3); });
}

std::string refused_list(const std::vector<std::int32_t>& list) {
  return refused_by(factory_of<Wrong>(list, 0.0F));
}

TEST(ExternalRankerTest, RefusesWhatIsNoList) {
  EXPECT_EQ(refused_list({3, 2, 1, 0}), kNoError);
  EXPECT_EQ(refused_list({3, 2, 12, 0}),
            "Ranker 'mine' returned document 12 in round 3, but the query has 10 documents.");
  EXPECT_EQ(refused_list({3, 2, 10, 0}),
            "Ranker 'mine' returned document 10 in round 3, but the query has 10 documents.");
  EXPECT_EQ(refused_list({-1, 2, 1, 0}),
            "Ranker 'mine' returned document -1 in round 3, but the query has 10 documents.");
  EXPECT_EQ(refused_list({3, 2, 1, 3}), "Ranker 'mine' returned document 3 twice in round 3.");
  EXPECT_EQ(refused_list({3, 2, 1}), "Ranker 'mine' returned 3 documents in round 3, but 4 are shown.");
}

TEST(ExternalRankerTest, RefusesScoresThatAreNotFinite) {
  const RegisteredMine mine(
      factory_of<Wrong>(ShownDocs{0, 1, 2, 3}, std::numeric_limits<float>::infinity()));
  const auto ranker = make_mine();
  TestContext context;
  play_mine(*ranker, context.round, 5);
  std::vector<float> scores(10);
  EXPECT_EQ(message_of<InvalidArgument>(
                [&] { ranker->score(context.execution, queries_of_mine().query(0).features, scores); }),
            "Ranker 'mine' gave document 2 of 10 the score inf after round 5: scores must be finite.");
}

/// A perceptron that knows some orders, and scores each query by its name and number.
class Sure : public Perceptron {
 public:
  Sure(const ExternalRankerRequest& request, std::vector<ExternalOrder> orders)
      : Perceptron(request), orders_(std::move(orders)) {}

  std::vector<std::int32_t> rank(const ExternalQuery& query) override {
    std::vector<std::int32_t> list(query.docs);
    std::iota(list.begin(), list.end(), 0);
    return list;
  }
  std::optional<std::vector<ExternalOrder>> certain_orders(const ExternalQuery& query) override {
    EXPECT_EQ(query.docs, 10);
    return orders_;
  }
  bool score_query(const ExternalQuery& query, std::span<float> scores) const override {
    for (std::size_t doc = 0; doc < scores.size(); ++doc)
      scores[doc] = static_cast<float>(query.qid.size() + 10 * query.query) + query.inputs[doc * 6];
    if (query.ids.size() > 1 && query.ids[1] == "bad") scores[1] = std::nanf("");
    return true;
  }

 private:
  std::vector<ExternalOrder> orders_;
};

RankedList sure_list(OnlineRanker& ranker, TestContext& context) {
  return ranker.rank(context.round, queries_of_mine().query(0), 3);
}

std::string refused_orders(const std::vector<ExternalOrder>& orders) {
  return refused_by(factory_of<Sure>(orders));
}

TEST(ExternalRankerTest, ItsCertainOrdersAreCounted) {
  // The list is 0 to 9, of which four are shown. (2, 1) goes against it, and 5 is never shown.
  const RegisteredMine mine(factory_of<Sure>(std::vector<ExternalOrder>{{0, 1}, {2, 1}, {3, 5}, {0, 1}}));
  TestContext context;
  const auto ranker = make_mine();
  const RankedList list = sure_list(*ranker, context);
  for (std::int32_t doc = 0; doc < 10; ++doc) EXPECT_EQ(list.docs[doc], doc);
  ASSERT_TRUE(list.certainty.has_value());
  EXPECT_EQ(list.certainty->shown_pairs, 6);
  EXPECT_EQ(list.certainty->certain_pairs, 2);
  EXPECT_EQ(list.certainty->blocks, 1);
  EXPECT_EQ(list.certainty->block_size[0], 10);
  std::vector<std::pair<int, int>> orders;
  for (const CertainOrder& order : list.certain_orders) orders.emplace_back(order.first, order.second);
  std::sort(orders.begin(), orders.end());
  EXPECT_EQ(orders, (std::vector<std::pair<int, int>>{{0, 1}, {2, 1}}));
}

TEST(ExternalRankerTest, AllOrdersMakeBlocksOfOne) {
  std::vector<ExternalOrder> all;
  for (std::int32_t a = 0; a < 10; ++a) {
    for (std::int32_t b = a + 1; b < 10; ++b) all.push_back({b, a});  // all against the list
  }
  const RegisteredMine mine(factory_of<Sure>(all));
  TestContext context;
  const auto ranker = make_mine();
  const RankedList list = sure_list(*ranker, context);
  EXPECT_EQ(list.docs[0], 0);
  EXPECT_EQ(list.certainty->certain_pairs, 6);
  EXPECT_EQ(list.certainty->blocks, 10);
  EXPECT_EQ(list.certainty->block_size[3], 1);
}

TEST(ExternalRankerTest, RefusesWhatIsNoOrder) {
  EXPECT_EQ(refused_orders({}), kNoError);
  EXPECT_EQ(refused_orders({{0, 1}, {1, 10}}),
            "Ranker 'mine' is certain of (1, 10) in round 3: the query has 10 documents.");
  EXPECT_EQ(refused_orders({{-1, 1}}),
            "Ranker 'mine' is certain of (-1, 1) in round 3: the query has 10 documents.");
  EXPECT_EQ(refused_orders({{4, 4}}),
            "Ranker 'mine' is certain of (4, 4) in round 3: an order has two documents.");
  EXPECT_EQ(refused_orders({{7, 8}, {0, 1}, {1, 2}, {2, 0}}),
            "Ranker 'mine' is certain of (0, 1) in round 3: its orders go in a circle.");
}

TEST(ExternalRankerTest, ScoresAPartQueryByQuery) {
  const RegisteredMine mine(factory_of<Sure>(std::vector<ExternalOrder>()));
  const std::vector<float> values = {1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0};
  const std::vector<std::int64_t> ends = {1, 3};
  const std::vector<std::string> qids = {"a", "four"};
  FeatureMatrix docs{values.data(), 3, 6};
  docs.list_ends = ends;
  TestContext context;
  std::vector<float> scores(3);
  const auto ranker = make_mine();
  ranker->score_part(context.execution, docs, {qids}, scores);
  EXPECT_EQ(scores, (std::vector<float>{2, 16, 17}));
  const std::string text = "onetwobad";
  const std::vector<std::uint64_t> word_ends = {3, 6, 9};
  EXPECT_EQ(
      message_of<InvalidArgument>([&] {
        ranker->score_part(context.execution, docs, {qids, {text, word_ends}}, scores);
      }),
      "Ranker 'mine' gave document 1 of 2 of query 'four' the score nan after round 0: scores must be "
      "finite.");
}

TEST(ExternalRankerTest, TakesParametersFromItsSettings) {
  ExternalRankerRequest made;
  const RegisteredMine mine([&](const ExternalRankerRequest& request) {
    made = request;
    return make_perceptron(request);
  });
  const auto make = [](const std::string& own) {
    RankerSettings settings = external_settings();
    settings.name = "fast";
    settings.own = own;
    return make_mine(settings);
  };
  make("mine(step=2)");
  EXPECT_EQ(made.name, "fast");
  EXPECT_EQ(made.parameters, "step=2");
  make("mine");
  EXPECT_EQ(made.parameters, "");
  EXPECT_EQ(message_of<InvalidArgument>([&] { make("mine(step=2"); }),
            "Ranker 'fast' has own = \"mine(step=2\": write NAME or NAME(PARAMETERS).");
  EXPECT_EQ(message_of<InvalidArgument>([&] { make("yours(step=2)"); }).substr(0, 40),
            "No ranker named 'yours' is registered: k");
}

TEST(ExternalRankerTest, RefusesNames) {
  const std::string unknown =
      "No ranker named 'mine' is registered: kind 'external' is for programs that bring rankers of their "
      "own.";
  EXPECT_EQ(message_of<InvalidArgument>([] { check_ranker(external_settings(), kShownByMine); }), unknown);
  EXPECT_EQ(message_of<InvalidArgument>([] { make_mine(); }), unknown);
  {
    const RegisteredMine mine(
        [](const ExternalRankerRequest&) -> std::unique_ptr<ExternalRanker> { return nullptr; });
    check_ranker(external_settings(), kShownByMine);  // makes none
    EXPECT_EQ(message_of<InvalidArgument>([] { make_mine(); }),
              "The factory of ranker 'mine' made no ranker: return an object.");
    EXPECT_EQ(message_of<InvalidArgument>([] { register_ranker("mine", "of a test", make_perceptron); }),
              "There is a registered ranker 'mine' already: choose another name, or unregister it.");
  }
  EXPECT_EQ(message_of<InvalidArgument>([] { check_ranker(external_settings(), kShownByMine); }), unknown);
  EXPECT_EQ(message_of<InvalidArgument>([] { register_ranker("", "of a test", make_perceptron); }),
            "A registered ranker needs a name that is not empty.");
  EXPECT_EQ(message_of<InvalidArgument>([] { register_ranker("mine", "two\nlines", make_perceptron); }),
            "The description of ranker 'mine' must be one line: name the ranker, its version and its "
            "parameters.");
  EXPECT_EQ(message_of<InvalidArgument>([] { register_ranker("mine", "of a test", nullptr); }),
            "The factory of ranker 'mine' is empty: register a function.");
}

TEST(ExternalRankerTest, ItsModelFileIsRefused) {
  const RegisteredMine mine(make_perceptron);
  const TemporaryFolder folder;
  write_file_atomically(folder / "model.safetensors", model_bytes(make_mine()->model(), {}));
  const std::string sentence =
      message_of<DataError>([&] { load_model(folder / "model.safetensors", ModelCode::kRefuse); });
  EXPECT_TRUE(contains(
      sentence, "It is of an external ranker, which only the program that brings that ranker can use."));
}

TEST(ExternalRankerTest, CannotStartFromAModel) {
  const RegisteredMine mine(make_perceptron);
  const std::vector<std::vector<float>> thetas = {std::vector<float>(5)};
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] {
                         make_ranker(external_settings(), 5, TrialKeys{}, kShownByMine,
                                     {.first_thetas = thetas});
                       }),
                       "Ranker 'mine' cannot start from a model"));
}

}  // namespace
}  // namespace olrank
