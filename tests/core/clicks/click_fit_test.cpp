#include "core/clicks/click_fit.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/clicks/reading_model.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

constexpr std::int64_t kQueries = 20;
constexpr std::int64_t kDocsOfQuery = 10;
constexpr std::int64_t kDocs = kQueries * kDocsOfQuery;
constexpr std::size_t kRanks = 6;
constexpr std::int64_t kColumns = 3;

/// Users whose parameters are known, and documents with inputs from which attraction follows.
struct World {
  std::vector<double> looks = {1.0, 0.8, 0.55, 0.4, 0.3, 0.25};    // pbm
  std::vector<double> trusts = {0.5, 0.35, 0.25, 0.2, 0.1, 0.05};  // trust
  std::vector<double> continuation = {0.8, 0.7, 0.65, 0.6, 0.5};   // dcm
  double perseverance = 0.85;                                      // dbn
  std::vector<double> satisfaction = std::vector<double>(kDocs);
  std::vector<double> attraction = std::vector<double>(kDocs);
  ClickDocs docs{kDocs, kColumns, {}};

  World() {
    RngStream draws(PhiloxKey{{5, 6}}, 0);
    for (std::int64_t doc = 0; doc < kDocs; ++doc) {
      double logit = -0.8;
      for (const double weight : {1.2, -0.7, 0.4}) {
        docs.inputs.push_back(static_cast<float>(draws.normal()));
        logit += weight * docs.inputs.back();
      }
      attraction[doc] = 1.0 / (1.0 + std::exp(-logit));
      satisfaction[doc] = 0.2 + 0.6 * draws.uniform();
    }
  }

  /// γ(rank, last click), both from 1.
  static double browsing(std::size_t rank, std::size_t last) {
    return rank == 1 ? 1.0 : last == 0 ? 0.9 / std::sqrt(rank) : 0.95 / static_cast<double>(rank - last);
  }

  std::vector<std::uint8_t> clicks(FittedModel model, const std::vector<std::int32_t>& list,
                                   RngStream& draws) const {
    std::vector<std::uint8_t> clicks(list.size(), 0);
    std::size_t last = 0;
    bool reads = true;
    for (std::size_t rank = 0; rank < list.size() && reads; ++rank) {
      const double look = model == FittedModel::kUserBrowsing ? browsing(rank + 1, last)
                          : model == FittedModel::kPosition || goes_by_inputs(model) ? looks[rank]
                                                                                     : 1.0;
      const bool examined = draws.uniform() < look;
      const double trust = model == FittedModel::kTrust ? trusts[rank] : 0.0;
      const double attracts = attraction[list[rank]];
      const bool clicked = draws.uniform() < attracts + (1.0 - attracts) * trust && examined;
      clicks[rank] = clicked ? 1 : 0;
      if (clicked) last = rank + 1;
      if (model == FittedModel::kCascade) reads = !clicked;
      if (model == FittedModel::kDependent && clicked && rank < continuation.size())
        reads = draws.uniform() < continuation[rank];
      if (model == FittedModel::kDynamicBayesian) {
        const bool satisfied = clicked && draws.uniform() < satisfaction[list[rank]];
        reads = !satisfied && draws.uniform() < perseverance;
      }
    }
    return clicks;
  }

  /// Lists in random orders, so that every document is shown at every rank.
  ClickLists simulate(FittedModel model, std::int64_t lists, std::uint32_t seed) const {
    ClickLists log;
    for (std::int64_t list = 0; list < lists; ++list) {
      RngStream draws(PhiloxKey{{seed, 1}}, static_cast<std::uint32_t>(list));
      const auto query = static_cast<std::int32_t>(draws.index(kQueries));
      std::vector<std::int32_t> shown(kDocsOfQuery);
      std::iota(shown.begin(), shown.end(), query * static_cast<std::int32_t>(kDocsOfQuery));
      draws.shuffle(std::span(shown));
      shown.resize(kRanks);
      log.add(shown, clicks(model, shown, draws));
    }
    return log;
  }
};

double mean_error(const std::vector<double>& truth, const std::vector<double>& found) {
  const auto distance = [](double a, double b) { return std::fabs(a - b); };
  return std::inner_product(truth.begin(), truth.end(), found.begin(), 0.0, std::plus<>(), distance) /
         static_cast<double>(truth.size());
}

/// Parameters of reading, true and found.
std::pair<std::vector<double>, std::vector<double>> reading_of(const World& world,
                                                               const FittedClicks& fit) {
  const ReadingParameters found = fit.reading->parameters();
  if (fit.model == FittedModel::kDependent) return {world.continuation, found.continuation};
  if (fit.model == FittedModel::kDynamicBayesian) return {{world.perseverance}, {*found.perseverance}};
  if (fit.model == FittedModel::kUserBrowsing) {
    std::vector<double> truth;
    for (std::size_t rank = 1; rank <= kRanks; ++rank) {
      for (std::size_t last = 0; last < rank; ++last) truth.push_back(World::browsing(rank, last));
    }
    return {truth, found.by_last_click};
  }
  if (fit.model == FittedModel::kCascade) return {{0.0}, {0.0}};
  if (fit.model == FittedModel::kTrust) return {world.trusts, found.trust};
  return {world.looks, found.by_rank};
}

class ClickFitTest : public testing::TestWithParam<FittedModel> {};

INSTANTIATE_TEST_SUITE_P(Models, ClickFitTest,
                         testing::Values(FittedModel::kPosition, FittedModel::kCascade,
                                         FittedModel::kDependent, FittedModel::kDynamicBayesian,
                                         FittedModel::kUserBrowsing, FittedModel::kTwoTower,
                                         FittedModel::kTrust),
                         [](const auto& tested) {
                           std::string name(name_of(tested.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(ClickFitTest, RecoversItsParameters) {
  const World world;
  double before = 1.0;
  for (const std::int64_t lists : {2'000, 32'000}) {
    const ClickLists log = world.simulate(GetParam(), lists, 3);
    const FittedClicks fit = fit_clicks(GetParam(), log, world.docs, kRanks, {.iterations = 500});
    std::vector<double> attractions;
    for (std::int32_t doc = 0; doc < kDocs; ++doc) attractions.push_back(fit.attraction->of(doc));
    const double attraction = mean_error(world.attraction, attractions);
    const auto [truth, found] = reading_of(world, fit);
    const double reading = mean_error(truth, found);
    RecordProperty("attraction_" + std::to_string(lists), std::to_string(attraction));
    RecordProperty("reading_" + std::to_string(lists), std::to_string(reading));
    if (lists == 2'000) {
      before = attraction;
      continue;
    }
    EXPECT_TRUE(fit.converged);
    // A document is examined about 400 times, so that the standard error of its attraction is below .025
    // and the mean of errors below .8 of that; ranks have thirty times the lists.
    // The curve of σ alone tells trust from attraction, so that their errors are larger.
    const bool trusts = GetParam() == FittedModel::kTrust;
    EXPECT_LT(attraction, trusts ? 0.04 : 0.02);
    EXPECT_LT(attraction, trusts ? before : before / 2.0);
    EXPECT_LT(reading, trusts ? 0.04 : 0.02);
  }
}

TEST_P(ClickFitTest, ItsObjectiveNeverFalls) {
  const World world;
  for (const FittedModel user : {GetParam(), FittedModel::kDynamicBayesian}) {
    const ClickLists log = world.simulate(user, 500, 4);
    const FittedClicks fit =
        fit_clicks(GetParam(), log, world.docs, kRanks, {.iterations = 60, .tolerance = 0.0});
    ASSERT_GE(fit.objectives.size(), 2U);
    for (std::size_t i = 1; i < fit.objectives.size(); ++i) {
      // Sums of 3,000 logarithms.
      EXPECT_GE(fit.objectives[i], fit.objectives[i - 1] - 1e-9 * std::fabs(fit.objectives[i])) << i;
    }
    EXPECT_GT(fit.objectives.back(), fit.objectives.front());
  }
}

TEST(ClickFitOfFewListsTest, DocumentsSeenOnceAreNeitherCertainNorImpossible) {
  ClickLists log;
  log.add(std::vector<std::int32_t>{0, 1}, std::vector<std::uint8_t>{1, 0});
  const FittedClicks fit = fit_clicks(FittedModel::kCascade, log, {.count = 3}, 2, {});
  // The first rank was clicked once in one list: (1 + 1)/(1 + 2) is the mean of the prior.
  EXPECT_NEAR(fit.attraction->of(0), (2.0 * 2.0 / 3.0 + 1.0) / 3.0, 1e-12);
  // A document below the cascade's click, or never shown, has the mean of the prior.
  EXPECT_NEAR(fit.attraction->of(1), 2.0 / 3.0, 1e-12);
  EXPECT_NEAR(fit.attraction->of(2), 2.0 / 3.0, 1e-12);
}

TEST(ClickFiguresTest, AreTheFormulas) {
  ClickLists log;
  log.add(std::vector<std::int32_t>{0, 1}, std::vector<std::uint8_t>{1, 0});
  log.add(std::vector<std::int32_t>{0}, std::vector<std::uint8_t>{0});
  log.add(std::vector<std::int32_t>{1, 0}, std::vector<std::uint8_t>{1, 1});
  const FittedClicks fit = fit_clicks(FittedModel::kRankOnly, log, {.count = 2}, 2, {});
  const ClickFigures figures = judge_clicks(fit, log);
  const double first = 3.0 / 5.0;
  const double second = 2.0 / 4.0;
  const double of_first = std::log2(first) + std::log2(1 - first) + std::log2(first);
  const double of_second = std::log2(1 - second) + std::log2(second);
  ASSERT_EQ(figures.perplexity_by_rank.size(), 2U);
  EXPECT_NEAR(figures.perplexity_by_rank[0], std::exp2(-of_first / 3), 1e-12);
  EXPECT_NEAR(figures.perplexity_by_rank[1], std::exp2(-of_second / 2), 1e-12);
  EXPECT_NEAR(figures.perplexity, std::exp2(-(of_first + of_second) / 5), 1e-12);
  EXPECT_NEAR(figures.log_likelihood, std::log(2.0) * (of_first + of_second) / 3, 1e-12);
}

TEST(ClickFiguresTest, AClickThatAModelExcludesIsNotInfinitelyWrong) {
  ClickLists log;
  log.add(std::vector<std::int32_t>{0, 1}, std::vector<std::uint8_t>{1, 1});
  const FittedClicks fit = fit_clicks(FittedModel::kCascade, log, {.count = 2}, 2, {});
  const double click = fit.attraction->of(0);
  EXPECT_NEAR(judge_clicks(fit, log).log_likelihood, std::log(click) + std::log(1e-6), 1e-9);
}

ClickLists lists_of(const std::vector<std::vector<std::int32_t>>& shown) {
  ClickLists lists;
  for (const auto& docs : shown) lists.add(docs, std::vector<std::uint8_t>(docs.size(), 0));
  return lists;
}

using Groups = std::vector<std::vector<std::int64_t>>;

TEST(RankLinksTest, MovedDocumentsLinkRanks) {
  // 0 and 2 change places; 3 is at the ranks 2 and 4; a document that no list shows counts for nothing.
  const RankLinks links = find_rank_links(lists_of({{0, 1, 2, 3, 4}, {2, 3, 0}, {0, 5}}), 9);
  EXPECT_EQ(links.docs, 6);
  EXPECT_EQ(links.moved, 3);
  EXPECT_EQ(links.by_rank, (std::vector<std::int64_t>{2, 1, 2, 1, 0}));
  EXPECT_EQ(links.groups, (Groups{{0, 2}, {1, 3}, {4}}));
  // Links are transitive.
  EXPECT_EQ(
      find_rank_links(lists_of({{0, 1, 2, 3}, {1, 0, 4, 5}, {6, 2, 7, 8}, {9, 10, 3, 11}}), 12).groups,
      (Groups{{0, 1, 2, 3}}));
  EXPECT_TRUE(find_rank_links(ClickLists(), 0).groups.empty());
}

constexpr std::size_t kShown = 4;
constexpr int kPatterns = 1 << kShown;

using Clicks = std::vector<std::uint8_t>;

/// Sums over all hidden states: counts of a model's coins, by name, and the posterior of examination. add()
/// is given a state: how likely it is with these clicks, which ranks it examines and what its coins show.
struct SlowResult {
  double probability = 0.0;  // of the clicks
  std::vector<double> examined = std::vector<double>(kShown, 0.0);
  std::map<std::string, std::pair<double, double>> counts;  // of yes and no

  void add(double joint, const std::vector<bool>& looked,
           const std::vector<std::pair<std::string, bool>>& coins) {
    probability += joint;
    for (std::size_t rank = 0; rank < kShown; ++rank) examined[rank] += looked[rank] ? joint : 0.0;
    for (const auto& [name, shows] : coins) (shows ? counts[name].first : counts[name].second) += joint;
  }
  void normalise() {
    for (double& one : examined) one /= probability;
    for (auto& [name, count] : counts) {
      count.first /= probability;
      count.second /= probability;
    }
  }
};

struct List {
  std::vector<std::int32_t> docs = {2, 0, 3, 1};
  std::vector<double> attraction = {0.3, 0.8, 0.45, 0.15};
};

Clicks clicks_of(int pattern, std::size_t ranks = kShown) {
  Clicks clicks(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) clicks[rank] = pattern >> rank & 1;
  return clicks;
}

/// Every subset of ranks may be the examined ones.
SlowResult enumerate_looks(const List& list, const Clicks& clicks, bool by_last_click,
                           const std::vector<double>& looks) {
  SlowResult all;
  for (int state = 0; state < kPatterns; ++state) {
    double joint = 1.0;
    std::vector<bool> examined;
    std::vector<std::pair<std::string, bool>> coins;
    std::size_t last = 0;
    for (std::size_t rank = 0; rank < kShown; ++rank) {
      const std::size_t place = by_last_click ? rank * (rank + 1) / 2 + last : rank;
      const bool looked = (state >> rank & 1) != 0;
      joint *= looked ? looks[place] : 1.0 - looks[place];
      const double click = looked ? list.attraction[rank] : 0.0;
      joint *= clicks[rank] != 0 ? click : 1.0 - click;
      examined.push_back(looked);
      coins.emplace_back("look" + std::to_string(place), looked);
      if (clicks[rank] != 0) last = rank + 1;
    }
    all.add(joint, examined, coins);
  }
  all.normalise();
  return all;
}

/// Users leave after any rank; where they clicked there, because they were satisfied or without that.
SlowResult enumerate_scans(const List& list, const Clicks& clicks, const ReadingModel& model) {
  const ReadingParameters parameters = model.parameters();
  const bool dbn = parameters.perseverance.has_value();
  const double perseverance = parameters.perseverance.value_or(1.0);
  SlowResult all;
  for (std::size_t reached = 1; reached <= kShown; ++reached) {
    for (const bool leaves_satisfied : {false, true}) {
      double joint = 1.0;
      std::vector<bool> examined;
      std::vector<std::pair<std::string, bool>> coins;
      for (std::size_t rank = 0; rank < kShown; ++rank) {
        const bool clicked = clicks[rank] != 0;
        examined.push_back(rank < reached);
        const double click = rank < reached ? list.attraction[rank] : 0.0;
        joint *= clicked ? click : 1.0 - click;
        if (rank >= reached || rank + 1 == kShown) continue;
        const bool on = rank + 1 < reached;
        if (!on && leaves_satisfied && (!clicked || !dbn)) joint = 0.0;
        if (!dbn) {
          const double goes_on = !clicked                          ? 1.0
                                 : parameters.continuation.empty() ? 0.0
                                                                   : parameters.continuation[rank];
          joint *= on ? goes_on : 1.0 - goes_on;
          if (clicked && !parameters.continuation.empty())
            coins.emplace_back("continuation" + std::to_string(rank), on);
          continue;
        }
        const bool satisfied = !on && leaves_satisfied;
        if (clicked) {
          const double satisfaction = model.satisfaction(list.docs[rank]);
          joint *= satisfied ? satisfaction : 1.0 - satisfaction;
          coins.emplace_back("satisfaction" + std::to_string(list.docs[rank]), satisfied);
        }
        if (satisfied) continue;
        joint *= on ? perseverance : 1.0 - perseverance;
        coins.emplace_back("perseverance", on);
      }
      // With all ranks reached, nothing is known of leaving.
      if (reached == kShown && leaves_satisfied) joint = 0.0;
      all.add(joint, examined, coins);
    }
  }
  all.normalise();
  return all;
}

struct Case {
  FittedModel model;
  std::function<SlowResult(const List&, const Clicks&, const ReadingModel&)> enumerate;
  bool one_click = false;

  bool excludes(int pattern) const {
    return one_click && std::popcount(static_cast<unsigned>(pattern)) > 1;
  }
};

const std::vector<Case>& cases() {
  static const std::vector<Case> cases = {
      {FittedModel::kPosition,
       [](const List& list, const Clicks& clicks, const ReadingModel& model) {
         return enumerate_looks(list, clicks, false, model.parameters().by_rank);
       }},
      {FittedModel::kUserBrowsing,
       [](const List& list, const Clicks& clicks, const ReadingModel& model) {
         return enumerate_looks(list, clicks, true, model.parameters().by_last_click);
       }},
      {FittedModel::kCascade, enumerate_scans, true},
      {FittedModel::kDependent, enumerate_scans},
      {FittedModel::kDynamicBayesian, enumerate_scans}};
  return cases;
}

/// Parameters that differ from each other, learned from some lists.
void teach(ReadingModel& model, const Case& tested) {
  const List list;
  std::vector<double> examined(kShown);
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    if (tested.excludes(pattern)) continue;
    const Clicks clicks = clicks_of(pattern);
    for (int times = 0; times < 1 + pattern * 7 % 5; ++times)
      model.expect({list.docs, clicks}, list.attraction, examined);
  }
  model.maximise();
}

double value_of(const ReadingModel& model, const std::string& name) {
  const ReadingParameters parameters = model.parameters();
  const auto digits = name.find_first_of("0123456789");
  const std::size_t number = digits == std::string::npos ? 0 : std::stoul(name.substr(digits));
  if (name == "perseverance") return *parameters.perseverance;
  if (name.starts_with("continuation")) return parameters.continuation[number];
  if (name.starts_with("satisfaction")) return model.satisfaction(static_cast<std::int32_t>(number));
  return (parameters.by_rank.empty() ? parameters.by_last_click : parameters.by_rank)[number];
}

TEST(ReadingModelTest, ExpectationsAreSumsOverAllHiddenStates) {
  const List list;
  for (const Case& tested : cases()) {
    for (int pattern = 0; pattern < kPatterns; ++pattern) {
      if (tested.excludes(pattern)) continue;
      SCOPED_TRACE(std::string(name_of(tested.model)) + ", clicks " + std::to_string(pattern));
      const auto model = make_reading_model(tested.model, kShown, kShown);
      teach(*model, tested);
      const Clicks clicks = clicks_of(pattern);
      const SlowResult slow = tested.enumerate(list, clicks, *model);
      std::vector<double> examined(kShown, -1.0);
      const double log_likelihood = model->expect({list.docs, clicks}, list.attraction, examined);
      // Sums of at most 2⁴ products of less than 20 factors.
      EXPECT_NEAR(std::exp(log_likelihood), slow.probability, 1e-14);
      for (std::size_t rank = 0; rank < kShown; ++rank) {
        // The cascade tells nothing about ranks below its click: its posterior there is 0, too.
        EXPECT_NEAR(examined[rank], slow.examined[rank], 1e-13) << rank;
      }
      model->maximise();
      for (const auto& [name, counts] : slow.counts) {
        if (name == "look0") {
          EXPECT_EQ(value_of(*model, name), 1.0);
          continue;
        }
        EXPECT_NEAR(value_of(*model, name), (1.0 + counts.first) / (2.0 + counts.first + counts.second),
                    1e-13)
            << name;
      }
    }
  }
}

TEST(ReadingModelTest, ForecastsAreSumsOverAllClicks) {
  const List list;
  for (const Case& tested : cases()) {
    SCOPED_TRACE(name_of(tested.model));
    const auto model = make_reading_model(tested.model, kShown, kShown);
    teach(*model, tested);
    std::vector<double> examined(kShown);
    const auto probability = [&](int pattern, std::size_t ranks) {
      if (tested.excludes(pattern)) return 0.0;
      const Clicks clicks = clicks_of(pattern, ranks);
      return std::exp(model->expect({std::span(list.docs).first(ranks), clicks},
                                    std::span(list.attraction).first(ranks),
                                    std::span(examined).first(ranks)));
    };
    std::vector<double> alone(kShown, 0.0);
    std::vector<double> examined_alone(kShown, 0.0);
    double total = 0.0;
    for (int pattern = 0; pattern < kPatterns; ++pattern) {
      const double of_pattern = probability(pattern, kShown);
      total += of_pattern;
      for (std::size_t rank = 0; rank < kShown; ++rank) {
        if ((pattern >> rank & 1) != 0) alone[rank] += of_pattern;
        if (of_pattern > 0.0) examined_alone[rank] += of_pattern * examined[rank];
      }
    }
    EXPECT_NEAR(total, 1.0, 1e-13);
    for (int pattern = 0; pattern < kPatterns; ++pattern) {
      if (tested.excludes(pattern)) continue;
      ListForecast forecast;
      const Clicks clicks = clicks_of(pattern);
      model->forecast({list.docs, clicks}, list.attraction, forecast);
      for (std::size_t rank = 0; rank < kShown; ++rank) {
        EXPECT_NEAR(forecast.alone[rank], alone[rank], 1e-13);
        EXPECT_NEAR(forecast.examined[rank], examined_alone[rank], 1e-13);
        const int above = pattern & ((1 << rank) - 1);
        const double given = rank == 0 ? 1.0 : probability(above, rank);
        EXPECT_NEAR(forecast.given_above[rank], probability(above | 1 << rank, rank + 1) / given, 1e-12);
      }
    }
  }
}

TEST(ReadingModelTest, LongListsWithoutClicksStayFinite) {
  const std::size_t ranks = 5000;
  const std::vector<std::int32_t> docs(ranks, 0);
  const Clicks clicks(ranks, 0);
  const std::vector<double> attraction(ranks, 0.9);
  std::vector<double> examined(ranks);
  for (const FittedModel kind : {FittedModel::kCascade, FittedModel::kDependent}) {
    const auto model = make_reading_model(kind, ranks, 1);
    EXPECT_NEAR(model->expect({docs, clicks}, attraction, examined), ranks * std::log(0.1), 1e-6);
    EXPECT_EQ(examined.back(), 1.0);
  }
  const auto dbn = make_reading_model(FittedModel::kDynamicBayesian, ranks, 1);
  EXPECT_TRUE(std::isfinite(dbn->expect({docs, clicks}, attraction, examined)));
  EXPECT_GT(examined[1], 0.0);
  EXPECT_EQ(examined.back(), 0.0);
}

}  // namespace
}  // namespace olrank
