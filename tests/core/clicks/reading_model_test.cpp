#include "core/clicks/reading_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace olrank {
namespace {

constexpr std::size_t kShown = 4;
constexpr int kPatterns = 1 << kShown;

using Clicks = std::vector<std::uint8_t>;

/// What a model's coins counted, by name, and the posterior of examination.
struct SlowResult {
  double probability = 0.0;  // of the clicks
  std::vector<double> examined = std::vector<double>(kShown, 0.0);
  std::map<std::string, std::pair<double, double>> counts;  // of yes and no
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

std::string coin(const char* name, std::size_t number) {
  return name + std::to_string(number);
}

/// Sums over all hidden states. A state is what `visit` is given: how likely it is with these clicks, which
/// ranks it examines and what its coins show.
class Enumeration {
 public:
  void visit(double joint, const std::vector<bool>& examined,
             const std::vector<std::pair<std::string, bool>>& coins) {
    result_.probability += joint;
    for (std::size_t rank = 0; rank < examined.size(); ++rank)
      result_.examined[rank] += examined[rank] ? joint : 0.0;
    for (const auto& [name, shows] : coins)
      (shows ? result_.counts[name].first : result_.counts[name].second) += joint;
  }
  SlowResult finish() {
    for (double& examined : result_.examined) examined /= result_.probability;
    for (auto& [name, counts] : result_.counts) {
      counts.first /= result_.probability;
      counts.second /= result_.probability;
    }
    return result_;
  }

 private:
  SlowResult result_;
};

/// Every subset of ranks may be the examined ones.
SlowResult enumerate_looks(const List& list, const Clicks& clicks, bool by_last_click,
                           const std::vector<double>& looks) {
  Enumeration all;
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
      coins.emplace_back(coin("look", place), looked);
      if (clicks[rank] != 0) last = rank + 1;
    }
    all.visit(joint, examined, coins);
  }
  return all.finish();
}

/// Users leave after any rank; where they clicked there, because they were satisfied or without that.
SlowResult enumerate_scans(const List& list, const Clicks& clicks, const ReadingModel& model) {
  const ReadingParameters parameters = model.parameters();
  const bool dbn = parameters.perseverance.has_value();
  const double perseverance = parameters.perseverance.value_or(1.0);
  Enumeration all;
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
            coins.emplace_back(coin("continuation", rank), on);
          continue;
        }
        const bool satisfied = !on && leaves_satisfied;
        if (clicked) {
          const double satisfaction = model.satisfaction(list.docs[rank]);
          joint *= satisfied ? satisfaction : 1.0 - satisfaction;
          coins.emplace_back(coin("satisfaction", list.docs[rank]), satisfied);
        }
        if (satisfied) continue;
        joint *= on ? perseverance : 1.0 - perseverance;
        coins.emplace_back("perseverance", on);
      }
      // With all ranks reached, nothing is known of leaving.
      if (reached == kShown && leaves_satisfied) joint = 0.0;
      all.visit(joint, examined, coins);
    }
  }
  return all.finish();
}

struct Case {
  const char* name;
  std::function<std::unique_ptr<ReadingModel>()> make;
  std::function<SlowResult(const List&, const Clicks&, const ReadingModel&)> enumerate;
  bool one_click = false;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> cases = {
      {"pbm", [] { return make_look_model(LooksBy::kRank, kShown); },
       [](const List& list, const Clicks& clicks, const ReadingModel& model) {
         return enumerate_looks(list, clicks, false, model.parameters().by_rank);
       }},
      {"ubm", [] { return make_look_model(LooksBy::kRankAndLastClick, kShown); },
       [](const List& list, const Clicks& clicks, const ReadingModel& model) {
         return enumerate_looks(list, clicks, true, model.parameters().by_last_click);
       }},
      {"cascade", [] { return make_cascade_model(); }, enumerate_scans, true},
      {"dcm", [] { return make_dependent_model(kShown); }, enumerate_scans},
      {"dbn", [] { return make_dynamic_bayesian_model(kShown); }, enumerate_scans}};
  return cases;
}

int clicks_in(int pattern) {
  return __builtin_popcount(static_cast<unsigned>(pattern));
}

/// Parameters that differ from each other, learned from some lists.
void teach(ReadingModel& model, bool one_click) {
  const List list;
  std::vector<double> examined(kShown);
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    if (one_click && clicks_in(pattern) > 1) continue;
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
      if (tested.one_click && clicks_in(pattern) > 1) continue;
      SCOPED_TRACE(std::string(tested.name) + ", clicks " + std::to_string(pattern));
      const auto model = tested.make();
      teach(*model, tested.one_click);
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
    SCOPED_TRACE(tested.name);
    const auto model = tested.make();
    teach(*model, tested.one_click);
    std::vector<double> examined(kShown);
    const auto probability = [&](int pattern, std::size_t ranks) {
      if (tested.one_click && clicks_in(pattern) > 1) return 0.0;
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
      if (tested.one_click && clicks_in(pattern) > 1) continue;
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

TEST(ReadingModelTest, TheRankOnlyModelCountsClicks) {
  const auto model = make_look_model(LooksBy::kRankAlone, 2);
  const std::vector<std::int32_t> docs = {0, 1};
  const std::vector<double> certain = {1.0, 1.0};
  std::vector<double> examined(2);
  for (const Clicks& clicks : {Clicks{1, 0}, Clicks{1, 1}, Clicks{0, 0}})
    model->expect({docs, clicks}, certain, examined);
  model->maximise();
  EXPECT_EQ(model->parameters().by_rank, (std::vector<double>{3.0 / 5.0, 2.0 / 5.0}));
}

TEST(ReadingModelTest, LongListsWithoutClicksStayFinite) {
  const std::size_t ranks = 5000;
  const std::vector<std::int32_t> docs(ranks, 0);
  const Clicks clicks(ranks, 0);
  const std::vector<double> attraction(ranks, 0.9);
  std::vector<double> examined(ranks);
  for (const auto& model : {make_cascade_model(), make_dependent_model(ranks)}) {
    EXPECT_NEAR(model->expect({docs, clicks}, attraction, examined), ranks * std::log(0.1), 1e-6);
    EXPECT_EQ(examined.back(), 1.0);
  }
  const auto dbn = make_dynamic_bayesian_model(1);
  EXPECT_TRUE(std::isfinite(dbn->expect({docs, clicks}, attraction, examined)));
  EXPECT_GT(examined[1], 0.0);
  EXPECT_EQ(examined.back(), 0.0);
}

}  // namespace
}  // namespace olrank
