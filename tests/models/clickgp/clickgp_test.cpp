#include <fmt/format.h>
#include <gtest/gtest.h>
#include <Eigen/Dense>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/data/synthetic.h"
#include "core/error.h"
#include "core/io/safetensors.h"
#include "core/random/rng_stream.h"
#include "core/statistics/slate_estimates.h"
#include "models/clickgp/click_memory.h"
#include "models/clickgp/click_ranking.h"
#include "models/clickgp/click_regression.h"
#include "models/files/model_scorer.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "tests/models/small_world.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/sanitized.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

constexpr std::int64_t kClickShown = 6;
constexpr std::int64_t kClickDocs = 14;

const SmallWorld& click_world() {
  static const SmallWorld made(23, 9, kClickDocs, 3);
  return made;
}

RankerSettings click_settings(ClickTerms terms = ClickTerms::kAdditive) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kClickGp, ProtocolName::kRecommended);
  settings.name = "clicks";
  settings.click.terms = terms;
  return settings;
}

std::unique_ptr<OnlineRanker> make_clicks(const RankerSettings& settings,
                                          const RankerDependencies& given = {},
                                          std::int64_t shown = kClickShown,
                                          std::int64_t features = click_world().features()) {
  return make_ranker(settings, features, TrialKeys::of(3, 1, "clicks"), shown, given);
}

std::unique_ptr<OnlineRanker> make_clicks(const RankerSettings& settings, const std::vector<float>& start) {
  return make_clicks(settings, {.first_thetas = std::span(&start, 1)});
}

/// Clicks on relevant documents with probability .9, on others with .2.
std::vector<std::uint8_t> noisy_clicks(std::uint32_t round, const QueryDocs& query,
                                       const ShownDocs& shown) {
  RngStream coins(make_key({.seed = 8, .purpose = Purpose::kProbe}), round);
  return clicks_where(shown, [&](std::int32_t doc) {
    return coins.uniform() < (click_world().grade(query.query, doc) != 0 ? 0.9 : 0.2);
  });
}

/// Clicks that follow a product of two features.
std::vector<std::uint8_t> product_clicks(std::uint32_t round, const QueryDocs& query,
                                         const ShownDocs& shown) {
  RngStream coins(make_key({.seed = 9, .purpose = Purpose::kProbe}), round);
  return clicks_where(shown, [&](std::int32_t doc) {
    const float* x = query.features.doc(doc).data();
    return coins.uniform() < ((x[0] - 0.5) * (x[2] - 0.5) > 0.0 ? 0.9 : 0.1);
  });
}

std::vector<std::uint8_t> opposite_clicks(std::uint32_t round, const QueryDocs& query,
                                          const ShownDocs& shown) {
  std::vector<std::uint8_t> clicks = product_clicks(round, query, shown);
  for (std::uint8_t& click : clicks) click = click == 0 ? 1 : 0;
  return clicks;
}

/// Rounds of this world's queries with a user, clicks_of(round, query, shown).
template <class ClicksOf>
std::vector<ShownDocs> play_clicks(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last,
                                   int threads, const ClicksOf& clicks_of) {
  return play_lists(first, last, threads, [&](RoundContext& context, std::uint32_t round) {
    const QueryDocs query = click_world().query_of(round);
    return play_list(ranker, context, query, round, kClickShown,
                     [&](const ShownDocs& shown) { return clicks_of(round, query, shown); });
  });
}

std::vector<ShownDocs> play_clicks(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last,
                                   int threads = 1) {
  return play_clicks(ranker, first, last, threads, noisy_clicks);
}

/// A ranker that loads another's state learns the same from further rounds.
template <class ClicksOf>
void expect_resumes(OnlineRanker& ranker, ClickTerms terms, std::uint32_t first, std::uint32_t last,
                    const ClicksOf& clicks_of) {
  const auto resumed = make_clicks(click_settings(terms));
  load_state(*resumed, state_of(ranker));
  play_clicks(ranker, first, last, 1, clicks_of);
  play_clicks(*resumed, first, last, 3, clicks_of);
  EXPECT_EQ(state_of(ranker), state_of(*resumed));
}

/// Returns what the rest of a saved state says, by name.
template <class T>
std::vector<T> saved_of(const OnlineRanker& ranker, const std::string& name) {
  StateReader state(state_of(ranker), "test");
  state.skip_to(name);
  return state.get<T>(name);
}

/// Λ and η of the linear model from nothing but the sites that the memory holds.
Eigen::MatrixXd slow_sums(const OnlineRanker& ranker, std::int64_t models, Eigen::VectorXd& evidence) {
  const std::int64_t inputs = click_world().features();
  const auto counts = saved_of<std::int64_t>(ranker, "clickgp.counts");
  const auto values = saved_of<float>(ranker, "clickgp.inputs");
  const auto numbers = saved_of<double>(ranker, "clickgp.numbers");
  const std::int64_t centred = models == 2 ? 4 * inputs : inputs;
  Eigen::MatrixXd precision = Eigen::MatrixXd::Zero(inputs + 1, inputs + 1);
  evidence = Eigen::VectorXd::Zero(inputs + 1);
  std::int64_t at_value = 0;
  std::int64_t at_number = 0;
  for (const std::int64_t docs : counts) {
    const float* scaled = values.data() + at_value;
    const float* means = scaled + docs * inputs;
    Eigen::MatrixXd rows(docs, inputs + 1);
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      rows(doc, 0) = 1.0;
      for (std::int64_t f = 0; f < inputs; ++f)
        rows(doc, f + 1) = double{scaled[doc * inputs + f]} - double{means[f]};
    }
    // clicks, then n, u, h, v + Mm, b and ρ of the first model.
    const Eigen::Map<const Eigen::VectorXd> curvature(numbers.data() + at_number + 3 * docs, docs);
    const Eigen::Map<const Eigen::VectorXd> of_site(numbers.data() + at_number + 4 * docs, docs);
    const double coupling = numbers[at_number + 5 * docs + 1];
    const Eigen::MatrixXd site =
        Eigen::MatrixXd(curvature.asDiagonal()) - coupling * curvature * curvature.transpose();
    precision += rows.transpose() * site * rows;
    evidence += rows.transpose() * of_site;
    at_value += docs * inputs + centred;
    at_number += docs + models * (4 * docs + 2);
  }
  return precision;
}

double largest_difference(const OnlineRanker& ranker, std::int64_t models) {
  Eigen::VectorXd evidence;
  const Eigen::MatrixXd precision = slow_sums(ranker, models, evidence);
  auto sums = saved_of<double>(ranker, "clickgp.0.sums");
  const auto retired = saved_of<double>(ranker, "clickgp.0.retired");  // empty while nothing is forgotten
  for (std::size_t place = 0; place < retired.size(); ++place) sums[place] -= retired[place];
  const Eigen::Index width = precision.rows();
  if (state_of(ranker).find("clickgp.0.collected") != std::string::npos) {
    // A θ̂, rows r and their weights w: they are in no sum yet.
    const auto collected = saved_of<double>(ranker, "clickgp.0.collected");
    const std::int64_t rows = (std::ssize(collected) - width) / (width + 1);
    for (std::int64_t row = 0; row < rows; ++row) {
      const Eigen::Map<const Eigen::VectorXd> r(collected.data() + (1 + row) * width, width);
      const double weight = collected[(1 + rows) * width + row];
      for (Eigen::Index i = 0; i < width; ++i) {
        for (Eigen::Index j = 0; j <= i; ++j) sums[width + i * (i + 1) / 2 + j] += weight * r[i] * r[j];
      }
    }
  }
  double largest = 0.0;
  for (Eigen::Index i = 0; i < width; ++i) {
    largest = std::max(largest, std::abs(sums[i] - evidence[i]));
    for (Eigen::Index j = 0; j <= i; ++j)
      largest = std::max(largest, std::abs(sums[width + i * (i + 1) / 2 + j] - precision(i, j)));
  }
  return largest;
}

TEST(ClickGpTest, SumsFollowEverySite) {
  for (const ClickTerms terms : {ClickTerms::kLinear, ClickTerms::kAdditive, ClickTerms::kProducts}) {
    const auto ranker = make_clicks(click_settings(terms));
    for (std::uint32_t round = 1; round <= 136; ++round) {
      play_clicks(*ranker, round, round);
      if (round % 7 != 0 && round != 30) continue;
      EXPECT_LT(largest_difference(*ranker, terms == ClickTerms::kLinear ? 1 : 2), 1e-11) << round;
    }
  }
}

TEST(ClickGpTest, ThetaFollowsListsBetweenSolutions) {
  const auto ranker = make_clicks(click_settings(ClickTerms::kLinear));
  play_clicks(*ranker, 1, 128);  // a solution
  const auto before = saved_of<double>(*ranker, "clickgp.0.theta");
  play_clicks(*ranker, 129, 129);
  const auto after = saved_of<double>(*ranker, "clickgp.0.theta");
  Eigen::VectorXd evidence;
  Eigen::MatrixXd precision = slow_sums(*ranker, 1, evidence);
  const double strength = saved_of<double>(*ranker, "clickgp.0.blocks").back();
  precision.diagonal().array() += strength;
  precision(0, 0) += 0.1 - strength;
  const Eigen::VectorXd exact = precision.llt().solve(evidence);
  const auto error = [&](const std::vector<double>& theta) {
    const Eigen::VectorXd off = Eigen::Map<const Eigen::VectorXd>(theta.data(), exact.size()) - exact;
    return std::sqrt(off.dot(precision * off));
  };
  EXPECT_GT(error(before), 0.0);
  EXPECT_LT(error(after), 0.5 * error(before)) << error(after) << " after " << error(before);
}

TEST(ClickGpTest, CertainOrdersAreSeldomWrong) {
  const auto ranker = make_clicks(click_settings());
  play_clicks(*ranker, 1, 400);
  std::int64_t certain = 0;
  std::int64_t wrong = 0;
  TestContext context;
  for (std::int64_t number = 0; number < click_world().queries(); ++number) {
    const RankedList list = ranker->rank(context.round, click_world().query(number), 401);
    ASSERT_TRUE(list.certainty.has_value());
    for (const CertainOrder& order : list.certain_orders) {
      const auto first = click_world().grade(number, order.first);
      const auto second = click_world().grade(number, order.second);
      certain += first != second ? 1 : 0;
      wrong += first < second ? 1 : 0;
    }
  }
  EXPECT_GT(certain, 20);
  EXPECT_LE(static_cast<double>(wrong), 0.06 * static_cast<double>(certain));
}

TEST(ClickGpTest, ProbabilitiesOfOrdersAddUp) {
  const auto ranker = make_clicks(click_settings());
  play_clicks(*ranker, 1, 50);
  const RoundDetail detail = detail_of(*ranker, click_world().query_of(51), 50);
  ASSERT_EQ(std::ssize(detail.probability), kClickDocs * kClickDocs);
  for (std::int64_t i = 0; i < kClickDocs; ++i) {
    EXPECT_DOUBLE_EQ(detail.probability[i * kClickDocs + i], 0.5);
    for (std::int64_t j = 0; j < kClickDocs; ++j) {
      EXPECT_NEAR(detail.probability[i * kClickDocs + j] + detail.probability[j * kClickDocs + i], 1.0,
                  1e-12);
      if (detail.certain[i * kClickDocs + j] == 0) continue;
      EXPECT_GE(detail.probability[i * kClickDocs + j], 0.95);
    }
  }
}

TEST(ClickGpTest, FrozenRankersStayAsTheyAre) {
  const auto ranker = make_clicks(click_settings());
  play_clicks(*ranker, 1, 40);
  const auto frozen = ranker->freeze();
  TestContext context;
  const QueryDocs query = click_world().query_of(41);
  std::vector<std::int64_t> names;
  for (std::int32_t doc = 0; doc < kClickDocs; ++doc) names.push_back(query.number(doc));
  const RankingTask task{query.features, kClickShown, 41, true, nullptr, {query.query, names}};
  Ranking before;
  frozen->rank(context.execution, task, before);
  const RankedList live = ranker->rank(context.round, query, 41);
  EXPECT_EQ(before.list, std::vector<std::int32_t>(live.docs.begin(), live.docs.end()));
  EXPECT_EQ(std::ssize(before.probabilities), kClickShown * kClickShown);
  play_clicks(*ranker, 41, 80);
  Ranking after;
  frozen->rank(context.execution, task, after);
  EXPECT_EQ(before.scores, after.scores);
  EXPECT_EQ(before.list, after.list);
  EXPECT_EQ(before.probabilities, after.probabilities);
  const RankingTask stranger{query.features, kClickShown, 41, false};
  Ranking unknown;
  frozen->rank(context.execution, stranger, unknown);
  EXPECT_NE(unknown.scores, before.scores);  // the memory is no part of the model
}

TEST(ClickGpTest, ForgetsQueriesBeyondItsMemory) {
  RankerSettings settings = click_settings(ClickTerms::kLinear);
  const double of_query = clickgp_bytes(settings, click_world().features(), kClickShown + 3, 1.0);
  settings.click.memory_limit = 4.0 * of_query / 1e6;
  const auto ranker = make_clicks(settings);
  play_clicks(*ranker, 1, 120);
  EXPECT_LE(saved_of<std::int64_t>(*ranker, "clickgp.queries").size(), 4U);
  EXPECT_GE(saved_of<std::int64_t>(*ranker, "clickgp.queries").size(), 1U);
  EXPECT_GT(click_world().ndcg(*ranker, kClickShown), 0.85);  // what they taught stays
}

constexpr std::int64_t kChangingShown = 11;
constexpr std::int64_t kConstantDoc = 1;

std::unique_ptr<OnlineRanker> make_changing(const RankerSettings& settings) {
  return make_clicks(settings, {}, kChangingShown);
}

/// Lists of one query. Each has a document of all lists and ten that no list had before.
std::vector<ShownDocs> play_changing(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last,
                                     int threads = 1) {
  const std::int64_t features = click_world().features();
  return play_lists(first, last, threads, [&](RoundContext& context, std::uint32_t round) {
    RngStream draws(make_key({.seed = 12, .purpose = Purpose::kProbe}), round);
    std::vector<float> inputs(kChangingShown * features);
    for (float& input : inputs) input = static_cast<float>(draws.uniform());
    std::vector<std::int64_t> names(kChangingShown);
    for (std::int64_t doc = 0; doc < kChangingShown; ++doc) names[doc] = std::int64_t{round} * 10 + doc;
    names.front() = kConstantDoc;
    const QueryIdentity identity{1000, names};
    QueryDocs query{1000, 0, {inputs.data(), kChangingShown, features}};
    query.identity = &identity;
    return play_list(ranker, context, query, round, kChangingShown, [&](const ShownDocs& shown) {
      return clicks_where(shown, [&](std::int32_t doc) { return inputs[doc * features] > 0.6F; });
    });
  });
}

constexpr std::int64_t kMostDocs = 1024;
constexpr std::uint32_t kFirstDrop = 103;  // of these lists, the first after which a query had more

TEST(ClickGpTest, DropsDocumentsOfAQueryThatHasTooMany) {
  const ExpectedWarnings warnings;
  for (const ClickTerms terms : {ClickTerms::kLinear, ClickTerms::kProducts}) {
    const auto ranker = make_changing(click_settings(terms));
    for (std::uint32_t round = 1; round <= 140; ++round) {
      play_changing(*ranker, round, round);
      const auto docs = saved_of<std::int64_t>(*ranker, "clickgp.docs");
      const std::int64_t lists_after = std::int64_t{round} - kFirstDrop;
      ASSERT_EQ(std::ssize(docs) == 1 + 10 * round, lists_after < 0) << round;
      ASSERT_LE(std::ssize(docs), kMostDocs) << round;
      for (std::int64_t doc = 10 * round + 1; doc < 10 * round + kChangingShown; ++doc)
        ASSERT_NE(std::find(docs.begin(), docs.end(), doc), docs.end()) << round;
      ASSERT_NE(std::find(docs.begin(), docs.end(), kConstantDoc), docs.end()) << round;
      if (round % 20 != 0 && std::abs(lists_after) > 1) continue;
      EXPECT_LT(largest_difference(*ranker, terms == ClickTerms::kLinear ? 1 : 2), 1e-9) << round;
    }
  }
  EXPECT_EQ(warnings.count("more than 1024 documents (list 103)"), 2);  // one of each ranker
  EXPECT_EQ(std::ssize(warnings.messages()), 2);
}

TEST(ClickGpTest, RestartsChangeNothingWhenDocumentsAreDropped) {
  const ExpectedWarnings warnings;
  const auto play = [](OnlineRanker& ranker, std::uint32_t first, std::uint32_t last, int threads) {
    const auto lists = play_changing(ranker, first, last, threads);
    // The format is that of earlier versions until then.
    EXPECT_EQ(state_of(ranker).find("clickgp.shown_at") != std::string::npos, last >= kFirstDrop);
    return lists;
  };
  expect_same_bits([] { return make_changing(click_settings()); }, play, 130,
                   {60, kFirstDrop - 1, kFirstDrop, 112});
}

TEST(ClickGpTest, AQueryHasAShareOfTheMemory) {
  const ExpectedWarnings warnings;
  RankerSettings settings = click_settings();
  settings.click.memory_limit = 40e-6 * clickgp_bytes(settings, click_world().features(), kClickDocs, 1.0);
  const auto ranker = make_changing(settings);
  for (std::uint32_t round = 1; round <= 100; ++round) {
    play_clicks(*ranker, round, round);
    play_changing(*ranker, 3 * round + 1, 3 * round + 3);
  }
  auto counts = saved_of<std::int64_t>(*ranker, "clickgp.counts");
  ASSERT_EQ(std::ssize(counts), click_world().queries() + 1);  // no other query is forgotten
  std::sort(counts.begin(), counts.end());
  EXPECT_GT(counts.back(), kClickDocs);
  EXPECT_LE(counts.back(), 64);
  EXPECT_EQ(warnings.count("more than 64 documents"), 1);
  // One query alone stays within the limit, too.
  settings.click.memory_limit = 1e-6 * clickgp_bytes(settings, click_world().features(), 30.0, 1.0);
  const auto alone = make_changing(settings);
  play_changing(*alone, 1, 20);
  EXPECT_LE(saved_of<std::int64_t>(*alone, "clickgp.docs").size(), 30U);
}

TEST(KnownQueryTest, SplitsOffWhatWasShownLeastRecently) {
  KnownQuery known;
  known.sites.resize(2);
  for (std::int64_t doc = 0; doc < 6; ++doc) {
    known.add(10 + doc, 2);
    known.scaled[2 * doc] = static_cast<float>(doc);
    known.clicks[doc] = 100.0 + static_cast<double>(doc);
    for (KnownQuery::Site& site : known.sites) {
      site.departure[doc] = 0.1 * static_cast<double>(doc);
      site.examined[doc] = 6.0 - static_cast<double>(doc);
    }
  }
  known.means = {0.5F};
  known.learned_at = 9;
  known.sites[1].coupling = 0.25;
  known.shown_at = {0, 7, 0, 0, 5, 9};
  const KnownQuery dropped = known.split(4);
  EXPECT_EQ(dropped.docs, (std::vector<std::int64_t>{12, 13}));  // less examined than document 10
  EXPECT_EQ(known.docs, (std::vector<std::int64_t>{10, 11, 14, 15}));
  EXPECT_EQ(known.shown_at, (std::vector<std::uint64_t>{0, 7, 5, 9}));
  EXPECT_EQ(known.scaled, (std::vector<float>{0, 0, 1, 0, 4, 0, 5, 0}));
  EXPECT_EQ(dropped.clicks, (std::vector<double>{102, 103}));
  EXPECT_EQ(known.sites[1].departure, (std::vector<double>{0.0, 0.1, 0.4, 0.5}));
  const KnownQuery* const parts[] = {&known, &dropped};
  for (const KnownQuery* part : parts) {
    EXPECT_EQ(part->means, std::vector<float>{0.5F});
    EXPECT_EQ(part->learned_at, 9U);
    EXPECT_EQ(part->sites[1].coupling, 0.25);
    EXPECT_EQ(part->sites[0].curvature.size(), part->docs.size());
  }
}

TEST(ClickGpTest, LearnsFromQueriesWithoutNames) {
  const auto ranker = make_clicks(click_settings());
  TestContext context;
  const QueryIdentity nameless;
  for (std::uint32_t round = 1; round <= 200; ++round) {
    QueryDocs query = click_world().query_of(round);
    query.identity = &nameless;
    play_list(*ranker, context.round, query, round, kClickShown,
              [&](const ShownDocs& shown) { return noisy_clicks(round, query, shown); });
  }
  EXPECT_TRUE(saved_of<std::int64_t>(*ranker, "clickgp.queries").empty());
  EXPECT_GT(click_world().ndcg(*ranker, kClickShown), 0.85);
}

/// Plays rounds of users whose judgement is upside down with a probability that goes from 0 to 1 between
/// two rounds.
std::vector<ShownDocs> play_turning(OnlineRanker& ranker, std::uint32_t from, std::uint32_t to,
                                    std::uint32_t last, std::uint32_t first = 1, int threads = 1) {
  return play_clicks(ranker, first, last, threads,
                     [&](std::uint32_t round, const QueryDocs& query, const ShownDocs& shown) {
                       RngStream coins(make_key({.seed = 9, .purpose = Purpose::kProbe}), round);
                       const bool turned = from + coins.uniform() * (to - from) < round;
                       std::vector<std::uint8_t> clicks = click_world().perfect_clicks(query.query, shown);
                       for (std::uint8_t& click : clicks) click = (click != 0) != turned ? 1 : 0;
                       return clicks;
                     });
}

double changes_of(const OnlineRanker& ranker) {
  ExecutionContext context;
  for (const RankerFigure& figure : ranker.figures(context)) {
    if (std::string_view(figure.name) == "changes") return figure.value;
  }
  return -1.0;
}

TEST(ClickGpTest, NoticesAChangeAndLearnsItAsFastAsANewRanker) {
  const auto turned = make_clicks(click_settings(ClickTerms::kLinear));
  play_turning(*turned, 400, 400, 400);
  EXPECT_EQ(changes_of(*turned), 0.0);
  EXPECT_GT(click_world().ndcg(*turned, kClickShown), 0.9);
  std::uint32_t round = 400;
  for (; changes_of(*turned) == 0.0 && round < 500; ++round)
    play_turning(*turned, 400, 400, round + 1, round + 1);
  const auto fresh = make_clicks(click_settings(ClickTerms::kLinear));
  for (OnlineRanker* ranker : {turned.get(), fresh.get()})
    play_turning(*ranker, 400, 400, round + 3, round + 1);
  EXPECT_EQ(changes_of(*turned), 1.0);
  EXPECT_LT(click_world().ndcg(*fresh, kClickShown), 0.05);
  EXPECT_LT(click_world().ndcg(*turned, kClickShown), 0.05);  // the order is upside down
}

TEST(ClickGpTest, RestartsChangeNothingWhenUsersChange) {
  const auto play = [](OnlineRanker& ranker, std::uint32_t first, std::uint32_t last, int threads) {
    const auto lists = play_turning(ranker, 150, 150, last, first, threads);
    EXPECT_TRUE(last < 220 || changes_of(ranker) == 1.0);
    return lists;
  };
  for (const double forget : {0.0, 150.0}) {
    RankerSettings settings = click_settings();
    settings.click.forget = forget;
    settings.click.memory_limit = 0.005;  // of some queries
    expect_same_bits([&] { return make_clicks(settings); }, play, 220, {149, 155, 165, 200});
  }
}

TEST(ClickGpTest, EvidenceFadesAltogether) {
  std::vector<float> scores[2];
  for (const double forget : {0.0, 1.0}) {
    RankerSettings settings = click_settings(ClickTerms::kLinear);
    settings.click.forget = forget;
    const auto ranker = make_clicks(settings);
    TestContext context;
    for (std::uint32_t round = 1; round <= 1300; ++round) {
      const QueryDocs query = click_world().query(round == 1 ? 1 : 2);
      play_list(*ranker, context.round, query, round, kClickShown,
                [&](const ShownDocs& shown) { return noisy_clicks(round, query, shown); });
    }
    std::vector<float>& found = scores[forget == 0.0 ? 0 : 1];
    found = scores_of(*ranker, click_world().query(1).features);
    for (const float score : found) EXPECT_TRUE(std::isfinite(score));
  }
  EXPECT_NE(scores[0], scores[1]);
}

TEST(ClickGpTest, ForgetsUsersWhoChangeSlowly) {
  const auto turned = [](double forget) {
    RankerSettings settings = click_settings(ClickTerms::kLinear);
    settings.click.forget = forget;
    const auto ranker = make_clicks(settings);
    play_turning(*ranker, 0, 600, 500);
    return click_world().ndcg(*ranker, kClickShown);
  };
  EXPECT_LT(turned(50.0), turned(0.0) - 0.1);
}

/// The scores of documents by score(), which have to be those of the model file.
std::vector<float> exported_scores(const OnlineRanker& ranker, FeatureMatrix docs) {
  const ModelTensors model = ranker.model();
  std::vector<float> scaled;
  scale_within_query(docs, scaled);
  const std::vector<float> scores = scores_of(ranker, docs);
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    const float* x = scaled.data() + doc * docs.features;
    double sum = 0.0;
    for (std::int64_t f = 0; f < docs.features; ++f) {
      sum += double{model.tensors[0].values[f]} * x[f];
      for (int k = 2; k <= 4; ++k)
        sum += double{model.tensors[1].values[(k - 2) * docs.features + f]} *
               std::cos(M_PI * k * double{x[f]});
    }
    if (model.tensors.size() == 3) {
      const std::vector<std::vector<int>> pairs = nlohmann::json::parse(model.architecture.back().second);
      for (std::size_t p = 0; p < pairs.size(); ++p)
        sum += double{model.tensors[2].values[p]} * centred_product(x[pairs[p][0]], x[pairs[p][1]]);
    }
    EXPECT_NEAR(scores[doc], sum, 1e-5);
  }
  return scores;
}

std::vector<float> exported_scores(const OnlineRanker& ranker, std::int64_t number) {
  return exported_scores(ranker, click_world().query(number).features);
}

TEST(ClickGpTest, TakesTheProductsThatClicksSpeakFor) {
  const auto ranker = make_clicks(click_settings(ClickTerms::kProducts));
  play_clicks(*ranker, 1, 100, 1, product_clicks);
  const ModelTensors model = ranker->model();
  ASSERT_EQ(model.tensors.size(), 3U);
  EXPECT_EQ(model.architecture.back().second, "[[2,0]]");
  EXPECT_GT(model.tensors[2].values[0], 0.5F);
  const std::vector<float> scores = exported_scores(*ranker, 3);

  // A ranker with the model as its start has the same order.
  std::vector<float> start = flat_theta(model);
  start.insert(start.end(), {2.0F, 0.0F});
  const auto started = make_clicks(click_settings(ClickTerms::kLinear), start);
  const std::vector<float> at_start = exported_scores(*started, 3);
  for (std::size_t i = 0; i < scores.size(); ++i)
    EXPECT_NEAR(at_start[i] - at_start[0], scores[i] - scores[0], 1e-5);
  start.back() = 3.0F;
  EXPECT_THROW(make_clicks(click_settings(), start), InvalidArgument);
  expect_resumes(*ranker, ClickTerms::kProducts, 101, 160, product_clicks);
}

TEST(ClickGpTest, ClicksThatSpeakForNoProductChangeNothing) {
  const auto products = make_clicks(click_settings(ClickTerms::kProducts));
  const auto additive = make_clicks(click_settings(ClickTerms::kAdditive));
  play_clicks(*products, 1, 100);
  play_clicks(*additive, 1, 100);
  ASSERT_EQ(products->model().tensors.size(), 2U);
  EXPECT_EQ(products->parameters(), additive->parameters());
  EXPECT_EQ(exported_scores(*products, 3), exported_scores(*additive, 3));
}

TEST(ClickGpTest, ProductsTurnWithUsersWhoChange) {
  const auto ranker = make_clicks(click_settings(ClickTerms::kProducts));
  const std::int64_t none = ranker->parameters();
  play_clicks(*ranker, 1, 100, 1, product_clicks);
  EXPECT_EQ(ranker->parameters(), none + ClickFeatures::kPlacesAtOnce);
  play_clicks(*ranker, 101, 300, 1, opposite_clicks);
  EXPECT_EQ(changes_of(*ranker), 1.0);
  ASSERT_EQ(ranker->model().tensors.size(), 3U);
  EXPECT_LT(ranker->model().tensors[2].values[0], -0.5F);
}

TEST(ClickGpTest, TakesProductsWhileQueriesAreForgotten) {
  RankerSettings settings = click_settings(ClickTerms::kProducts);
  settings.click.memory_limit = 7e-6 * clickgp_bytes(settings, click_world().features(), kClickDocs, 1.0);
  const auto ranker = make_clicks(settings);
  play_clicks(*ranker, 1, 160, 1, product_clicks);
  ASSERT_EQ(ranker->model().tensors.size(), 3U);
  exported_scores(*ranker, 3);
}

constexpr std::int64_t kVectorShown = 10;

/// A perfect user's rounds on generated data.
std::vector<ShownDocs> play_dataset(OnlineRanker& ranker, const Dataset& data, std::uint32_t first,
                                    std::uint32_t last, int threads = 1) {
  return play_lists(first, last, threads, [&](RoundContext& context, std::uint32_t round) {
    const std::int64_t number = round % data.queries();
    const QueryDocs query = {number, data.offset(number), data.features_of(number)};
    return play_list(ranker, context, query, round, kVectorShown, [&](const ShownDocs& shown) {
      return clicks_where(shown, [&](std::int32_t doc) { return data.grades_of(number)[doc] > 1; });
    });
  });
}

TEST(ClickGpTest, AVectorHasAPriorOfItsOwnAndOtherInputsHaveCosines) {
  ExecutionContext context;
  constexpr std::int64_t kOrdinary = 12;
  constexpr std::int64_t kNumbers = 260;
  const Dataset data =
      make_synthetic("synth:small?queries=45&test_queries=1&docs=16&features=12&embedding=260", context)
          .train;
  const auto make = [&](ClickTerms terms) {
    return make_clicks(click_settings(terms), {}, kVectorShown, data.features());
  };
  const auto ranker = make(ClickTerms::kProducts);
  play_dataset(*ranker, data, 1, 19);
  EXPECT_FALSE(contains(state_of(*ranker), "vector"));
  play_dataset(*ranker, data, 20, 70);
  // Some numbers at its ends may vary too little with the others.
  const auto vector = saved_of<std::int64_t>(*ranker, "clickgp.1.vector");
  EXPECT_GE(vector[0], kOrdinary);
  EXPECT_LE(vector[0], kOrdinary + 8);
  EXPECT_LE(vector[1], kOrdinary + kNumbers);
  EXPECT_GE(vector[1], kOrdinary + kNumbers - 8);
  const auto places = saved_of<std::int64_t>(*ranker, "clickgp.1.products");
  ASSERT_GE(std::ssize(places), 6 * kOrdinary);
  for (std::int64_t f = 0; f < kOrdinary; ++f) {
    for (std::int64_t term = 0; term < 3; ++term) {
      EXPECT_EQ(places[6 * f + 2 * term], f);
      EXPECT_EQ(places[6 * f + 2 * term + 1], -2 - term);
    }
  }

  // The model file has these cosines, and no others.
  exported_scores(*ranker, data.features_of(0));
  const std::vector<float> cosines = ranker->model().tensors[1].values;
  for (std::int64_t weight = 0; weight < 3 * data.features(); ++weight) {
    const std::int64_t f = weight % data.features();
    EXPECT_EQ(cosines[weight] != 0.0F, f < vector[0] || f >= vector[1]) << f;
  }

  const auto play = [&](OnlineRanker& of, std::uint32_t first, std::uint32_t last, int threads) {
    return play_dataset(of, data, first, last, threads);
  };
  EXPECT_EQ(expect_same_bits([&] { return make(ClickTerms::kProducts); }, play, 70, {10, 27, 50}),
            state_of(*ranker));
  const auto linear = make(ClickTerms::kLinear);
  load_state(*linear, state_of(*linear));  // of a ranker that knows no vector
  EXPECT_FALSE(contains(state_of(*linear), "vector"));
}

TEST(ClickGpTest, FeaturesThatDoNotVaryTogetherAreNoVector) {
  ExecutionContext context;
  const Dataset data =
      make_synthetic("synth:yahoo-like?queries=45&test_queries=1&docs=16&features=300", context).train;
  const auto ranker = make_clicks(click_settings(ClickTerms::kProducts), {}, kVectorShown, data.features());
  play_dataset(*ranker, data, 1, 50);
  EXPECT_FALSE(contains(state_of(*ranker), "vector"));
}

/// The file of a network with drawn parameters.
std::string network_file(std::int64_t inputs) {
  const NetworkSettings settings = {.network = NetworkForm::kMlp,
                                    .width = 8,
                                    .depth = 2,
                                    .parameterisation = Parameterisation::kStandard};
  const auto network = make_tangent_model(settings, inputs);
  const auto theta = network->first_parameters(make_key({.seed = 5, .purpose = Purpose::kInitialisation}));
  return model_bytes(network->tensors(theta), {});
}

std::unique_ptr<OnlineRanker> make_started(const std::string& file,
                                           ClickTerms terms = ClickTerms::kProducts) {
  return make_clicks(click_settings(terms),
                     {.click_start = ClickStart::of_file(file, "net", ModelCode::kRefuse)});
}

/// Differences between the scores of documents, by the model in the bytes of a file.
void expect_scores_of(const std::string& file, FeatureMatrix docs, const std::vector<float>& scores) {
  Scratch scratch;
  std::vector<double> of_file(docs.docs);
  const std::int64_t whole[] = {0, docs.docs};
  ModelScorer(parse_model(file, "net", ModelCode::kRefuse)).score(scratch, docs, whole, of_file);
  for (std::size_t doc = 1; doc < scores.size(); ++doc)
    EXPECT_NEAR(of_file[doc] - of_file[0], scores[doc] - scores[0], 1e-5);
}

TEST(ClickGpTest, StartsFromANetworkAndNeedsItsFileNoMore) {
  const FeatureMatrix docs = click_world().query(2).features;
  const auto ranker = make_started(network_file(docs.features));
  expect_scores_of(network_file(docs.features), docs, scores_of(*ranker, docs));

  play_clicks(*ranker, 1, 60, 1, product_clicks);
  expect_resumes(*ranker, ClickTerms::kProducts, 61, 90, product_clicks);
  // Its model file has the network in it, and another ranker starts from that one.
  const ModelTensors model = ranker->model();
  EXPECT_NE(model.tensors.back().values[0], 0.0F);
  const std::string file = model_bytes(model, {});
  expect_scores_of(file, docs, scores_of(*ranker, docs));
  const LoadedModel loaded = parse_model(file, "net", ModelCode::kRefuse);
  EXPECT_EQ(tensors_of(loaded).back().values, model.tensors.back().values);
  expect_scores_of(file, docs, scores_of(*make_started(file, ClickTerms::kAdditive), docs));
}

TEST(ClickGpTest, RefusesANetworkOfOtherInputs) {
  EXPECT_EQ(message_of<InvalidArgument>([] { make_started(network_file(4)); }),
            "Ranker 'clicks' starts from a model of 4 inputs, but has 3: choose another model, or the "
            "features that the model was trained with.");
}

TEST(ClickGpTest, KeepsWhatItStartsFrom) {
  const auto teacher = make_clicks(click_settings());
  play_clicks(*teacher, 1, 300);
  const ModelTensors taught = teacher->model();
  const std::vector<float> additive = flat_theta(taught);
  const double strength = click_world().ndcg(*teacher, kClickShown);
  ASSERT_GT(strength, 0.93);
  for (const std::vector<float>& start : {additive, taught.tensors[0].values}) {
    for (const ClickTerms terms : {ClickTerms::kLinear, ClickTerms::kAdditive}) {
      const auto ranker = make_clicks(click_settings(terms), start);
      const double at_start = click_world().ndcg(*ranker, kClickShown);
      for (const std::uint32_t last : {1U, 4U, 9U, 25U}) {
        play_clicks(*ranker, last, last);
        EXPECT_GT(click_world().ndcg(*ranker, kClickShown), at_start - 0.02) << last;
      }
      exported_scores(*ranker, 3);
    }
  }
  // Until there are clicks, the order is that of the model.
  const auto ranker = make_clicks(click_settings(), additive);
  EXPECT_EQ(click_world().ndcg(*ranker, kClickShown), strength);
  play_clicks(*ranker, 1, 30);
  expect_resumes(*ranker, ClickTerms::kAdditive, 31, 60, noisy_clicks);  // a saved state holds the model
}

TEST(ClickGpTest, StatesEachShownOrderOnce) {
  const auto ranker = make_clicks(click_settings());
  play_clicks(*ranker, 1, 80);
  TestContext context;
  const QueryDocs query = click_world().query_of(81);
  const RankedList list = ranker->rank(context.round, query, 81);
  ASSERT_EQ(std::ssize(list.stated_orders), kClickShown * (kClickShown - 1) / 2);
  std::size_t certain = 0;
  for (const StatedOrder& order : list.stated_orders) {
    EXPECT_GE(order.probability, 0.5);
    certain += order.probability >= 0.95 ? 1 : 0;
  }
  EXPECT_EQ(certain, list.certain_orders.size());
}

TEST(ClickGpTest, PrecisionOfABlockIsWhereItsEvidencePeaks) {
  // log Z(λ) = ½ (D log λ − log|Λ + λI| + ηᵀ(Λ + λI)⁻¹η), and the prior of weight w adds
  // w/2 (log λ − λ/λ⁰).
  RngStream draws(make_key({.seed = 5, .purpose = Purpose::kProbe}), 0);
  constexpr int kSize = 6;
  constexpr double kFirst = 1.7;
  Eigen::MatrixXd root(kSize, 9);
  Eigen::VectorXd eta(kSize);
  for (double& value : root.reshaped()) value = draws.normal();
  for (double& value : eta) value = 3.0 * draws.normal();
  const Eigen::MatrixXd lambda = root * root.transpose();
  double precision = kFirst;
  const auto sum = [&](double at) -> Eigen::MatrixXd {
    return lambda + at * Eigen::MatrixXd::Identity(kSize, kSize);
  };
  for (int step = 0; step < 500; ++step) {
    const Eigen::MatrixXd inverse = sum(precision).inverse();
    const double known = kSize - precision * inverse.trace();
    precision = block_precision(known, (inverse * eta).squaredNorm(), kFirst);
  }
  const auto evidence = [&](double log_precision) {
    const double at = std::exp(log_precision);
    return 0.5 * (kSize * log_precision - std::log(sum(at).determinant()) +
                  eta.dot(sum(at).inverse() * eta)) +
           0.5 * (log_precision - at / kFirst);
  };
  constexpr double kStep = 1e-4;
  const double here = std::log(precision);
  EXPECT_NEAR((evidence(here + kStep) - evidence(here - kStep)) / (2.0 * kStep), 0.0, 1e-5);
  EXPECT_LT(evidence(here + 0.5), evidence(here));
  EXPECT_LT(evidence(here - 0.5), evidence(here));
}

/// The one site is Gaussian: y = u + b + noise of variance 1/W.
TEST(ClickGpTest, VarianceOfDeparturesIsWhereItsEvidencePeaks) {
  constexpr int kDocs = 12;
  constexpr double kQueryVariance = 0.7;
  constexpr double kWeightOfPrior = 20.0;
  RngStream draws(make_key({.seed = 5, .purpose = Purpose::kProbe}), 1);
  Eigen::VectorXd noise(kDocs);
  Eigen::VectorXd y(kDocs);
  for (int doc = 0; doc < kDocs; ++doc) {
    noise[doc] = 0.2 + draws.uniform();
    y[doc] = 2.5 * draws.normal();
  }
  const auto covariance = [&](double variance) {
    Eigen::MatrixXd sum = (noise.array() + variance).matrix().asDiagonal();
    sum.array() += kQueryVariance;
    return sum;
  };
  // The prior's density is σ^(−n) exp(−n/(4σ²)).
  const auto evidence = [&](double variance) {
    const Eigen::LLT<Eigen::MatrixXd> factor(covariance(variance));
    const double log_determinant = 2.0 * Eigen::MatrixXd(factor.matrixL()).diagonal().array().log().sum();
    return -0.5 * (log_determinant + y.dot(factor.solve(y))) -
           0.5 * kWeightOfPrior * (std::log(variance) + 0.5 / variance);
  };
  double variance = 0.5;
  for (int step = 0; step < 500; ++step) {
    const Eigen::MatrixXd inverse = covariance(variance).inverse();  // M of a site
    const double squares = (variance * (inverse * y)).squaredNorm();
    variance = departure_variance(squares, variance * inverse.trace(), kWeightOfPrior);
  }
  EXPECT_GT(variance, 0.55);  // the data speak
  for (const double beside : {0.99, 1.01}) EXPECT_LT(evidence(variance * beside), evidence(variance));
}

TEST(ClickGpTest, EqualDocumentsTeachNothingOfFeatures) {
  const auto ranker = make_clicks(click_settings());
  TestContext context;
  RngStream draws(make_key({.seed = 4, .purpose = Purpose::kProbe}), 0);
  std::vector<float> docs(5 * click_world().features());
  for (std::uint32_t round = 1; round <= 60; ++round) {
    for (std::int64_t f = 0; f < click_world().features(); ++f) {
      const auto value = static_cast<float>(draws.uniform());
      for (std::int64_t doc = 0; doc < 5; ++doc) docs[doc * click_world().features() + f] = value;
    }
    const QueryDocs query{round % 7, round % 7 * 5, {docs.data(), 5, click_world().features()}};
    play_list(*ranker, context.round, query, round, 5, [](const ShownDocs& shown) {
      return clicks_where(shown, [](std::int32_t doc) { return doc == 2; });
    });
  }
  for (const float score : scores_of(*ranker, click_world().query(0).features))
    EXPECT_LT(std::abs(score), 1.0F);
}

TEST(ClickGpTest, RefusesBadInput) {
  RankerSettings settings = click_settings();
  settings.click.memory_limit = 1e-6;
  EXPECT_THROW(make_clicks(settings), InvalidArgument);

  const auto ranker = make_clicks(click_settings());
  TestContext context;
  const QueryDocs query = click_world().query(0);
  const std::string before = state_of(*ranker);
  const std::vector<std::uint8_t> clicks = {0, 1};
  for (const ShownDocs& shown : {ShownDocs{0, 0}, ShownDocs{0, 99}, ShownDocs{0}})
    EXPECT_THROW(ranker->learn(context.round, {1, query, shown, clicks}), InvalidArgument);
  EXPECT_EQ(state_of(*ranker), before);
  EXPECT_THROW(make_clicks(click_settings(), std::vector{1.0F, 2.0F}), InvalidArgument);
}

struct SiteExample {
  Departures departures;
  std::vector<double> examined;
  std::vector<double> clicks;
  std::vector<double> model;

  std::size_t docs() const { return model.size(); }
};

SiteExample site_example(std::uint32_t number) {
  RngStream draws(make_key({.seed = 11, .purpose = Purpose::kProbe}), number);
  SiteExample made;
  made.departures = {0.05 + 2.0 * draws.uniform(), 0.05 + 2.0 * draws.uniform()};
  const std::size_t docs = 1 + draws.index(7);
  for (std::size_t doc = 0; doc < docs; ++doc) {
    made.examined.push_back(0.01 + 9.0 * draws.uniform());
    made.clicks.push_back(std::floor(made.examined.back() * draws.uniform()));
    made.model.push_back(2.0 * draws.normal());
  }
  return made;
}

struct SolvedSite {
  std::vector<double> departure, curvature, evidence;
  QuerySite site;

  explicit SolvedSite(const SiteExample& given, int steps = 60) {
    departure.resize(given.docs());
    curvature.resize(given.docs());
    evidence.resize(given.docs());
    site = {departure, curvature, evidence};
    solve_site(given.departures, {given.examined, given.clicks, given.model}, steps, 0.0, site);
  }
};

/// The mode of all departures together, by Newton's method on the dense problem.
Eigen::VectorXd joint_mode(const SiteExample& given) {
  const auto docs = static_cast<Eigen::Index>(given.docs());
  Eigen::VectorXd mode = Eigen::VectorXd::Zero(docs + 1);  // u, then b
  for (int step = 0; step < 200; ++step) {
    Eigen::VectorXd slope = Eigen::VectorXd::Zero(docs + 1);
    Eigen::MatrixXd curvature = Eigen::MatrixXd::Zero(docs + 1, docs + 1);
    for (Eigen::Index doc = 0; doc < docs; ++doc) {
      const double p = 1.0 / (1.0 + std::exp(-(given.model[doc] + mode[doc] + mode[docs])));
      const double residual = given.clicks[doc] - given.examined[doc] * p;
      const double weight = given.examined[doc] * p * (1.0 - p);
      slope[doc] += residual - mode[doc] / given.departures.document;
      slope[docs] += residual;
      curvature(doc, doc) += weight + 1.0 / given.departures.document;
      curvature(doc, docs) += weight;
      curvature(docs, doc) += weight;
      curvature(docs, docs) += weight;
    }
    slope[docs] -= mode[docs] / given.departures.query;
    curvature(docs, docs) += 1.0 / given.departures.query;
    Eigen::VectorXd change = curvature.ldlt().solve(slope);
    mode += change.cwiseMax(-1.0).cwiseMin(1.0);
  }
  return mode;
}

TEST(QuerySiteTest, FindsTheJointMode) {
  for (std::uint32_t number = 0; number < 50; ++number) {
    const SiteExample given = site_example(number);
    const SolvedSite found(given);
    const Eigen::VectorXd mode = joint_mode(given);
    for (std::size_t doc = 0; doc < given.docs(); ++doc)
      EXPECT_NEAR(found.departure[doc], mode[static_cast<Eigen::Index>(doc)], 1e-9) << number;
    EXPECT_NEAR(found.site.query_departure, mode[static_cast<Eigen::Index>(given.docs())], 1e-9) << number;
  }
}

TEST(QuerySiteTest, IsTheGaussianWithoutDepartures) {
  for (std::uint32_t number = 0; number < 50; ++number) {
    const SiteExample given = site_example(number);
    const SolvedSite found(given);
    const auto docs = static_cast<Eigen::Index>(given.docs());
    // For f = m + u + b with precision W, M is (W⁻¹ + σ²I + τ²11ᵀ)⁻¹, and the slope at the mode is v.
    Eigen::MatrixXd variance = Eigen::MatrixXd::Constant(docs, docs, given.departures.query) +
                               given.departures.document * Eigen::MatrixXd::Identity(docs, docs);
    Eigen::VectorXd slope(docs);
    for (Eigen::Index doc = 0; doc < docs; ++doc) {
      const double f = given.model[doc] + found.departure[doc] + found.site.query_departure;
      const double p = 1.0 / (1.0 + std::exp(-f));
      variance(doc, doc) += 1.0 / (given.examined[doc] * p * (1.0 - p));
      slope[doc] = given.clicks[doc] - given.examined[doc] * p;
    }
    const Eigen::MatrixXd precision = variance.inverse();
    const Eigen::VectorXd evidence =
        slope + precision * Eigen::Map<const Eigen::VectorXd>(given.model.data(), docs);
    for (Eigen::Index i = 0; i < docs; ++i) {
      EXPECT_NEAR(found.evidence[i], evidence[i], 1e-8) << number;
      for (Eigen::Index j = 0; j < docs; ++j) {
        const double of_site = (i == j ? found.curvature[i] : 0.0) -
                               found.site.coupling * found.curvature[i] * found.curvature[j];
        EXPECT_NEAR(of_site, precision(i, j), 1e-8) << number;
      }
    }
    // The variance of u given f is σ² − σ⁴ M_ii.
    const double s2 = given.departures.document;
    EXPECT_NEAR(variance_left(given.departures, found.curvature[0], found.site.coupling),
                s2 - s2 * s2 * precision(0, 0), 1e-8);
  }
}

// Var(f_i − f_j) = (J_i − J_j) (L Lᵀ)⁻¹ (J_i − J_j)ᵀ and what is left of both departures, each with a
// rounding of 1e-16 times the condition of L, below 1e3 here.
TEST(ClickBeliefTest, VariancesOfDifferencesAreThoseOfTheInverse) {
  for (const std::int64_t inputs : {1, 2, 7, 20}) {
    ClickBelief belief(ClickFeatures(inputs, ClickInputs::kAdditive));
    const std::int64_t width = belief.columns();
    RngStream draws(make_key({.seed = 16, .purpose = Purpose::kProbe}), static_cast<std::uint32_t>(inputs));
    const auto fill = [&](auto& values) {
      for (double& value : values) value = draws.uniform() - 0.5;
    };
    Eigen::MatrixXd precision = Eigen::MatrixXd::NullaryExpr(width, width, [&] { return draws.normal(); });
    precision = precision * precision.transpose() + Eigen::MatrixXd::Identity(width, width);
    auto sums = std::make_shared<AlignedVector<double>>(precision.data(), precision.data() + width * width);
    belief.solve(sums, std::vector<double>(width));
    belief.set_departures({0.7, 0.4});
    constexpr std::int64_t kDocs = 19;
    ClickView view;
    view.rows.resize(kDocs * width);
    view.pull.resize(width);
    view.curvature.resize(kDocs);
    fill(view.rows);
    fill(view.pull);
    for (double& curvature : view.curvature) curvature = draws.uniform();
    view.coupling = 0.05;
    const Eigen::MatrixXd inverse = precision.inverse();
    for (const std::int64_t count : {1, 5, 8, 9, 17}) {
      std::vector<std::int32_t> docs(count);
      for (std::int64_t i = 0; i < count; ++i) docs[i] = static_cast<std::int32_t>((7 * i) % kDocs);
      std::vector<double> variances(count * count);
      belief.difference_variances(view, docs, variances);
      const double s2 = 0.7;
      Eigen::MatrixXd rows(count, width);
      Eigen::MatrixXd left(count, count);
      for (std::int64_t i = 0; i < count; ++i) {
        const double h = view.curvature[docs[i]];
        for (std::int64_t c = 0; c < width; ++c)
          rows(i, c) =
              (1.0 - s2 * h) * view.rows[docs[i] * width + c] + s2 * view.coupling * h * view.pull[c];
        for (std::int64_t j = 0; j < count; ++j) {
          left(i, j) = s2 * s2 * view.coupling * h * view.curvature[docs[j]];
          if (i == j) left(i, j) += s2 - s2 * s2 * h;
        }
      }
      const Eigen::MatrixXd covariance = rows * inverse * rows.transpose() + left;
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < count; ++j)
          EXPECT_NEAR(variances[i * count + j],
                      covariance(i, i) + covariance(j, j) - 2.0 * covariance(i, j), 1e-11)
              << inputs << ", " << count << ": " << i << ", " << j;
      }
    }
  }
}

TEST(QuerySiteTest, FindsTheModeWhereClicksContradictTheModel) {
  SiteExample given;
  given.examined = {40.0};
  given.clicks = {40.0};
  given.model = {-20.0};
  const SolvedSite found(given, 100);
  EXPECT_NEAR(found.departure[0], joint_mode(given)[0], 1e-9);
}

TEST(QuerySiteTest, ProbabilitiesStayWithinTheirRange) {
  EXPECT_NEAR(click_probability(0.0), 0.5, 1e-16);
  EXPECT_NEAR(click_probability(3.0), 1.0 / (1.0 + std::exp(-3.0)), 1e-15);
  EXPECT_NEAR(click_probability(-3.0), 1.0 / (1.0 + std::exp(3.0)), 1e-15);
  EXPECT_LT(click_probability(1e9), 1.0);
  EXPECT_GT(click_probability(-1e9), 0.0);
}

/// Finds the probability of each of the first ranks by a search for the best document in each draw.
std::vector<double> slow_propensity(const std::vector<double>& centre, const ScoreDraw& draw, double floor,
                                    const std::vector<std::int32_t>& list, std::size_t ranks) {
  std::vector<double> of_prefix(ranks + 1);
  for (int number = 0; number < 64; ++number) {
    const double turn = 2.0 * std::acos(-1.0) * (number / 2) / 32;
    const double sign = number % 2 == 0 ? 1.0 : -1.0;
    std::vector<double> keys;
    for (std::size_t doc = 0; doc < list.size(); ++doc) {
      keys.push_back((centre[doc] + sign * draw.common[doc]) +
                     (std::cos(turn) * draw.own[doc] + std::sin(turn) * draw.other[doc]));
    }
    double probability = 1.0;
    std::vector<std::int32_t> left(list.begin(), list.end());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      of_prefix[rank] += probability;
      double best = -1e300;
      for (const std::int32_t doc : left) best = std::max(best, keys[doc]);
      const auto highest =
          std::count_if(left.begin(), left.end(), [&](std::int32_t doc) { return keys[doc] == best; });
      const double greedy = keys[list[rank]] == best ? 1.0 / static_cast<double>(highest) : 0.0;
      probability *= (1.0 - floor) * greedy + floor / static_cast<double>(left.size());
      left.erase(std::find(left.begin(), left.end(), list[rank]));
    }
    of_prefix[ranks] += probability;
  }
  std::vector<double> propensity;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    propensity.push_back(of_prefix[rank + 1] / of_prefix[rank]);
  return propensity;
}

TEST(ClickGpTest, ChancesAreThoseOfAllDraws) {
  for (std::uint32_t number = 0; number < 200; ++number) {
    RngStream draws(make_key({.seed = 12, .purpose = Purpose::kProbe}), number);
    const std::size_t docs = 1 + draws.index(30);
    const std::size_t ranks = 1 + draws.index(static_cast<std::uint32_t>(docs));
    const bool ties = number % 4 == 0;
    std::vector<double> centre;
    ScoreDraw draw;
    for (std::size_t doc = 0; doc < docs; ++doc) {
      centre.push_back(ties ? draws.index(3) : draws.normal());
      draw.common.push_back(number % 8 == 0 ? 0.0 : ties ? draws.index(2) : draws.normal());
      draw.own.push_back(ties ? 0.0 : draws.normal());
      draw.other.push_back(ties ? 0.0 : draws.normal());
    }
    const double floor = number % 3 == 0 ? 0.3 : 0.0;
    std::vector<std::int32_t> list(docs);
    std::iota(list.begin(), list.end(), 0);
    std::stable_sort(list.begin(), list.end(), [&](std::int32_t a, std::int32_t b) {
      return centre[a] + draw.common[a] + draw.own[a] > centre[b] + draw.common[b] + draw.own[b];
    });
    if (floor > 0.0) std::swap(list.front(), list.back());
    std::vector<double> found(ranks);
    find_propensity(centre, draw, floor, list, found);
    const std::vector<double> slow = slow_propensity(centre, draw, floor, list, ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      EXPECT_NEAR(found[rank], slow[rank], 1e-12) << "case " << number << " rank " << rank;
  }
}

/// A state whose lists chance decides: few lists of many queries.
std::unique_ptr<OnlineRanker> unsure_clicks(double floor) {
  RankerSettings settings = click_settings();
  settings.click.explore_floor = floor;
  auto ranker = make_clicks(settings);
  play_clicks(*ranker, 1, 12);
  return ranker;
}

// The weight 1/p of a list that another ranker would show is 1 on average, for each list: probabilities
// that are wrong, or of draws that are not interchangeable, would not have this. 12,000 draws, of which
// each list gets weights of at most 12 · 11/.5². The bound of five standard errors fails by chance in one
// of ten thousand runs, and the coins are the same ones in each run.
TEST(ClickGpTest, WeightsOfEachListAreOneOnAverage) {
  constexpr double kFloor = 0.5;
  constexpr std::uint32_t kDraws = 12'000;
  constexpr std::size_t kDocs = 5;
  const auto frozen = unsure_clicks(kFloor)->freeze();
  ExecutionContext execution;
  Ranking ranking;
  const FeatureMatrix docs = click_world().query(3).features.part(0, kDocs);
  std::vector<double> sums(kDocs * kDocs), squares(kDocs * kDocs);
  bool by_chance = false;
  for (std::uint32_t round = 1; round <= kDraws; ++round) {
    frozen->rank(execution, {docs, 2, round}, ranking);
    ASSERT_EQ(ranking.propensity.size(), 2);
    const double weight = 1.0 / (ranking.propensity[0] * ranking.propensity[1]);
    const std::size_t place = ranking.list[0] * kDocs + ranking.list[1];
    sums[place] += weight;
    squares[place] += weight * weight;
    by_chance = by_chance || (ranking.propensity[0] > kFloor / kDocs && ranking.propensity[0] < 0.5);
  }
  EXPECT_TRUE(by_chance);  // beyond the floor's
  for (std::size_t place = 0; place < sums.size(); ++place) {
    if (place / kDocs == place % kDocs) continue;
    const double mean = sums[place] / kDraws;
    EXPECT_NEAR(mean, 1.0, 5.0 * std::sqrt((squares[place] / kDraws - mean * mean) / kDraws)) << place;
  }
}

TEST(ClickGpTest, ListsWithoutAFloorAreThoseOfTheDraw) {
  // One of two documents that nothing tells apart comes first by chance.
  RankerSettings settings = click_settings();
  const auto fresh = make_clicks(settings)->freeze();
  ExecutionContext execution;
  Ranking ranking;
  const FeatureMatrix docs = click_world().query(0).features.part(0, 3);
  fresh->rank(execution, {docs, 2, 1}, ranking);
  EXPECT_EQ(ranking.propensity, (std::vector<double>{1.0 / 3.0, 0.5}));
  fresh->rank(execution, {.docs = docs, .cutoff = 2, .explore = false}, ranking);
  EXPECT_EQ(ranking.propensity, (std::vector<double>{1.0, 1.0}));
  // A floor changes lists, and no document is never shown.
  settings.click.explore_floor = 0.9;
  const auto plain = unsure_clicks(0.0)->freeze();
  const auto exploring = unsure_clicks(0.9)->freeze();
  std::vector<int> first(kClickDocs);
  for (std::uint32_t round = 100; round < 400; ++round) {
    exploring->rank(execution, {click_world().query(1).features, kClickShown, round}, ranking);
    ++first[ranking.list.front()];
    for (std::size_t rank = 0; rank < ranking.propensity.size(); ++rank) {
      EXPECT_GE(ranking.propensity[rank], 0.9 / static_cast<double>(kClickDocs - rank) - 1e-12);
      EXPECT_LE(ranking.propensity[rank], 1.0);
    }
    plain->rank(execution, {click_world().query(1).features, kClickShown, round}, ranking);
    EXPECT_GE(ranking.propensity.front(), 1.0 / 64.0 - 1e-12);
  }
  EXPECT_GT(*std::min_element(first.begin(), first.end()), 0);
}

/// Users who click what attracts them until a click satisfies them, with probability ½. What is below does
/// not matter.
double attraction_of(const float* x) {
  return 0.1 + 0.8 * double{x[0]} * double{x[1]};
}

constexpr std::int64_t kLoggedDocs = 5;
constexpr std::int64_t kLoggedRanks = 3;

/// The probability that another ranker shows `list[rank]` below the ones above: by Plackett-Luce, of scores
/// that see half of what attracts.
double other_policy(FeatureMatrix docs, std::span<const std::int32_t> list, std::size_t rank) {
  const auto strength = [&](std::int32_t doc) { return std::exp(3.0 * double{docs.doc(doc)[1]}); };
  double sum = 0.0;
  for (std::int32_t doc = 0; doc < kLoggedDocs; ++doc) {
    if (std::find(list.begin(), list.begin() + rank, doc) == list.begin() + rank) sum += strength(doc);
  }
  return strength(list[rank]) / sum;
}

double value_of_other(FeatureMatrix docs) {
  double value = 0.0;
  std::vector<std::int32_t> list;
  const std::function<void(double, double)> add = [&](double probability, double left) {
    if (std::ssize(list) == kLoggedRanks) return;
    for (std::int32_t doc = 0; doc < kLoggedDocs; ++doc) {
      if (std::find(list.begin(), list.end(), doc) != list.end()) continue;
      list.push_back(doc);
      const double shown = probability * other_policy(docs, list, list.size() - 1);
      const double attraction = attraction_of(docs.doc(doc).data());
      value += shown * left * attraction;
      add(shown, left * (1.0 - 0.5 * attraction));
      list.pop_back();
    }
  };
  add(1.0, 1.0);
  return value;
}

// 300 logs of 1,200 lists each, of queries that each log draws, while the ranker learns from the first 200
// of its own lists: how many 95 % intervals for another ranker have the true value? With a true coverage
// of 95 % fewer than 271 of 300 are covered with probability 1e-3.
TEST(ClickGpTest, IntervalsFromItsLogsCoverTheTruth) {
  constexpr int kLogs = kSanitized ? 3 : 300;
  constexpr std::int64_t kQueries = 200;
  constexpr std::uint32_t kLists = 1200;
  constexpr std::uint32_t kLearned = 200;
  const SmallWorld population(77, 40'000, kLoggedDocs, 2);
  double truth = 0.0;
  for (std::int64_t query = 0; query < population.queries(); ++query)
    truth += value_of_other(population.query(query).features) / static_cast<double>(population.queries());
  RankerSettings settings = click_settings(ClickTerms::kLinear);
  settings.click.explore_floor = 0.4;
  std::vector<int> covered(9);
  std::vector<double> mean(9);
  double mean_weight = 0.0;
  double effective = 0.0;
  TestContext context;
  for (int log = 0; log < kLogs; ++log) {
    const auto ranker = make_ranker(settings, 2, TrialKeys::of(log, 1, "logged"), kLoggedRanks);
    RngStream coins(make_key({.seed = 14, .purpose = Purpose::kProbe}), static_cast<std::uint32_t>(log));
    std::vector<std::int64_t> queries;
    for (std::int64_t query = 0; query < kQueries; ++query) queries.push_back(coins.index(40'000));
    SlateEstimates estimates(
        {.ranks = kLoggedRanks, .replicates = 200, .seed = static_cast<std::uint64_t>(log)});
    for (std::uint32_t round = 1; round <= kLists; ++round) {
      const QueryDocs query = population.query(queries[coins.index(kQueries)]);
      const RankedList made = ranker->rank(context.round, query, round);
      const std::vector<std::int32_t> shown(made.docs.begin(), made.docs.begin() + kLoggedRanks);
      const std::vector<double> logged(made.propensity.begin(), made.propensity.end());
      std::vector<double> target, rewards;
      std::vector<std::uint8_t> clicks;
      bool left = true;
      for (std::size_t rank = 0; rank < shown.size(); ++rank) {
        target.push_back(other_policy(query.features, shown, rank));
        clicks.push_back(left && coins.uniform() < attraction_of(query.features.doc(shown[rank]).data()));
        rewards.push_back(clicks.back());
        if (clicks.back() != 0 && coins.uniform() < 0.5) left = false;
      }
      estimates.add({static_cast<std::uint64_t>(query.query), rewards, logged, target});
      if (round <= kLearned) ranker->learn(context.round, {round, query, shown, clicks});
    }
    mean_weight += estimates.whole_support().mean_weight / kLogs;
    effective += estimates.whole_support().effective_lists / kLogs;
    for (const SlateEstimate& one : estimates.estimates()) {
      const auto place = static_cast<std::size_t>(one.estimator);
      covered[place] += one.value.low <= truth && truth <= one.value.high ? 1 : 0;
      mean[place] += one.value.value / kLogs;
    }
  }
  if (kSanitized) return;  // so few say nothing of a share
  EXPECT_NEAR(mean_weight, 1.0, 0.01);
  RecordProperty("effective", fmt::format("{:.0f}", effective));
  for (const SlateEstimator estimator :
       {SlateEstimator::kIps, SlateEstimator::kRips, SlateEstimator::kSelfIps, SlateEstimator::kSelfRips}) {
    const auto place = static_cast<std::size_t>(estimator);
    RecordProperty(fmt::format("covered_{}", name_of(estimator)), covered[place]);
    EXPECT_GE(covered[place], 271) << name_of(estimator);
    EXPECT_LE(covered[place], 297) << name_of(estimator);
    EXPECT_NEAR(mean[place], truth, 0.01) << name_of(estimator);
  }
}

/// Clicks on anything with probability ½.
std::vector<std::uint8_t> any_clicks(std::uint32_t round, const QueryDocs&, const ShownDocs& shown) {
  RngStream coins(make_key({.seed = 15, .purpose = Purpose::kProbe}), round);
  return clicks_where(shown, [&](std::int32_t) { return coins.uniform() < 0.5; });
}

/// Plays lists of users who click on anything, of which `worth_of` says what it is worth.
template <class Worth>
std::vector<ShownDocs> play_purchases(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last,
                                      const Worth& worth_of, int threads = 1) {
  return play_lists(first, last, threads, [&](RoundContext& context, std::uint32_t round) {
    const QueryDocs query = click_world().query_of(round);
    const ShownDocs shown = shown_of(ranker.rank(context, query, round), kClickShown);
    const std::vector<std::uint8_t> clicks = any_clicks(round, query, shown);
    std::vector<double> rewards;
    for (std::size_t rank = 0; rank < shown.size(); ++rank)
      rewards.push_back(clicks[rank] == 0 ? 0.0 : worth_of(query.features.doc(shown[rank]).data()));
    ranker.learn(context, {round, query, shown, clicks, rewards});
    return shown;
  });
}

double worth_by_input(const float* x) {
  return x[0] > 0.5F ? 10.0 : 1.0;
}

/// The share of pairs of documents with high and low first input that the scores order by it.
double share_by_input(const OnlineRanker& ranker) {
  double right = 0.0;
  double all = 0.0;
  for (std::int64_t query = 0; query < click_world().queries(); ++query) {
    const FeatureMatrix docs = click_world().query(query).features;
    const std::vector<float> scores = scores_of(ranker, docs);
    for (std::int64_t i = 0; i < kClickDocs; ++i) {
      for (std::int64_t j = 0; j < kClickDocs; ++j) {
        if (docs.doc(i)[0] <= 0.5F || docs.doc(j)[0] > 0.5F) continue;
        all += 1.0;
        right += scores[i] > scores[j] ? 1.0 : 0.0;
      }
    }
  }
  return right / all;
}

TEST(ClickGpTest, PurchasesComeBeforeAsManyClicks) {
  const auto bought = make_clicks(click_settings());
  const auto others_bought = make_clicks(click_settings());
  play_purchases(*bought, 1, 300, worth_by_input);
  play_purchases(*others_bought, 1, 300, [](const float* x) { return 11.0 - worth_by_input(x); });
  EXPECT_GT(share_by_input(*bought), 0.95);
  EXPECT_LT(share_by_input(*others_bought), 0.05);
  // So does the memory of documents: the first half of a list is of what was bought.
  const auto frozen = bought->freeze();
  ExecutionContext execution;
  Ranking ranking;
  int of_list = 0;
  int of_query = 0;
  for (std::int64_t query = 0; query < click_world().queries(); ++query) {
    const QueryDocs docs = click_world().query(query);
    const NamedQuery named(docs);
    frozen->rank(execution, {.docs = docs.features, .explore = false, .identity = named.identity}, ranking);
    for (std::size_t place = 0; place < ranking.list.size(); ++place) {
      const bool worthy = docs.features.doc(ranking.list[place])[0] > 0.5F;
      of_query += worthy ? 1 : 0;
      of_list += worthy && place < 3 ? 1 : 0;
    }
  }
  EXPECT_GE(of_list, 25);  // of 27, by chance 27 · of_query / 126
  EXPECT_LT(of_query, 90);
}

TEST(ClickGpTest, RewardsOfOneAreClicksAndHugeOnesCountAThousandTimes) {
  const auto plain = make_clicks(click_settings());
  const auto ones = make_clicks(click_settings());
  const auto thousands = make_clicks(click_settings());
  const auto huge = make_clicks(click_settings());
  play_purchases(*ones, 1, 60, [](const float*) { return 1.0; });
  play_clicks(*plain, 1, 60, 1, any_clicks);
  EXPECT_TRUE(state_of(*ones) == state_of(*plain));
  play_purchases(*thousands, 1, 60, [](const float*) { return 1000.0; });
  play_purchases(*huge, 1, 60, [](const float*) { return 1e300; });
  EXPECT_TRUE(state_of(*huge) == state_of(*thousands));
  EXPECT_FALSE(state_of(*huge) == state_of(*plain));
}

// If each click is worth w, odds are w times as high, and how users read is learned as without rewards.
TEST(ClickGpTest, RewardsLeaveReadingAlone) {
  const auto plain = make_clicks(click_settings());
  const auto bought = make_clicks(click_settings());
  play_purchases(*plain, 1, 300, [](const float*) { return 1.0; });
  play_purchases(*bought, 1, 300, [](const float*) { return 10.0; });
  for (const char* name : {"clickgp.0.examination", "clickgp.1.examination"}) {
    const auto expected = saved_of<double>(*plain, name);
    const auto found = saved_of<double>(*bought, name);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t place = 0; place < found.size(); place += 2) {
      EXPECT_NEAR(found[place] / (found[place] + found[place + 1]),
                  expected[place] / (expected[place] + expected[place + 1]), 0.1)
          << name << " " << place;
    }
  }
}

TEST(ClickGpTest, ALogWithRewardsGivesEqualBitsAgain) {
  const auto play = [](OnlineRanker& ranker, std::uint32_t first, std::uint32_t last, int threads) {
    return play_purchases(ranker, first, last, worth_by_input, threads);
  };
  expect_same_bits([] { return make_clicks(click_settings()); }, play, 120, {70});
}

}  // namespace
}  // namespace olrank
