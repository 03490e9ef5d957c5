#include "core/clicks/click_fit.h"

#include <algorithm>
#include <cmath>

namespace olrank {
namespace {

std::unique_ptr<ReadingModel> make_reading(FittedModel model, std::int64_t ranks, std::int64_t docs) {
  switch (model) {
    case FittedModel::kRankOnly:
      return make_look_model(LooksBy::kRankAlone, ranks);
    case FittedModel::kPosition:
    case FittedModel::kTwoTower:
      return make_look_model(LooksBy::kRank, ranks);
    case FittedModel::kUserBrowsing:
      return make_look_model(LooksBy::kRankAndLastClick, ranks);
    case FittedModel::kCascade:
      return make_cascade_model();
    case FittedModel::kDependent:
      return make_dependent_model(ranks);
    case FittedModel::kDynamicBayesian:
      return make_dynamic_bayesian_model(docs);
  }
  return nullptr;
}

/// The share of clicks at the first rank, where all models but one say that it is the mean attraction.
double first_rank_level(const ClickLists& lists) {
  double clicks = 0.0;
  double shown = 0.0;
  for (std::int64_t list = 0; list < lists.size(); ++list) {
    if (lists[list].size() == 0) continue;
    clicks += lists[list].clicks.front();
    shown += 1.0;
  }
  return (clicks + 1.0) / (shown + 2.0);
}

std::unique_ptr<Attraction> make_attraction(FittedModel model, const ClickLists& lists,
                                            const ClickDocs& docs) {
  if (model == FittedModel::kRankOnly) return make_certain_attraction(docs.count);
  const double level = first_rank_level(lists);
  if (model == FittedModel::kTwoTower) return make_attraction_by_inputs(docs, lists, level);
  return make_attraction_by_document(docs.count, level);
}

void attract(const Attraction& attraction, ClickedList list, std::vector<double>& values) {
  values.resize(list.size());
  for (std::size_t rank = 0; rank < list.size(); ++rank) values[rank] = attraction.of(list.docs[rank]);
}

/// ln P(what happened).
double log_of(double click, bool clicked) {
  constexpr double kLeast = 1e-6;
  return std::log(std::max(clicked ? click : 1.0 - click, kLeast));
}

}  // namespace

FittedClicks fit_clicks(FittedModel model, const ClickLists& lists, const ClickDocs& docs,
                        std::int64_t ranks, const ClickFitSettings& settings) {
  FittedClicks fit;
  fit.model = model;
  fit.reading = make_reading(model, ranks, docs.count);
  fit.attraction = make_attraction(model, lists, docs);
  std::vector<double> attraction;
  std::vector<double> examined(ranks);
  for (std::int64_t iteration = 0; iteration < settings.iterations && !fit.converged; ++iteration) {
    double objective = fit.reading->log_prior() + fit.attraction->log_prior();
    for (std::int64_t i = 0; i < lists.size(); ++i) {
      const ClickedList list = lists[i];
      attract(*fit.attraction, list, attraction);
      objective += fit.reading->expect(list, attraction, std::span(examined).first(list.size()));
      for (std::size_t rank = 0; rank < list.size(); ++rank) {
        // A click below what the model reads counts neither as one nor as none.
        const double yes = list.clicks[rank] != 0 ? examined[rank] : 0.0;
        fit.attraction->count(list.docs[rank], yes, examined[rank] - yes);
      }
    }
    fit.converged = !fit.objectives.empty() && objective - fit.objectives.back() <
                                                   settings.tolerance * static_cast<double>(lists.shown());
    fit.objectives.push_back(objective);
    fit.reading->maximise();
    fit.attraction->maximise();
  }
  return fit;
}

ClickFigures judge_clicks(const FittedClicks& fit, const ClickLists& lists) {
  ClickFigures figures;
  std::vector<double> sums(lists.ranks(), 0.0);
  std::vector<double> shown(lists.ranks(), 0.0);
  figures.examination.assign(lists.ranks(), 0.0);
  std::vector<double> attraction;
  ListForecast forecast;
  for (std::int64_t i = 0; i < lists.size(); ++i) {
    const ClickedList list = lists[i];
    attract(*fit.attraction, list, attraction);
    fit.reading->forecast(list, attraction, forecast);
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      const bool clicked = list.clicks[rank] != 0;
      figures.log_likelihood += log_of(forecast.given_above[rank], clicked);
      sums[rank] += log_of(forecast.alone[rank], clicked);
      figures.examination[rank] += forecast.examined[rank];
      shown[rank] += 1.0;
    }
  }
  double sum = 0.0;
  for (std::size_t rank = 0; rank < sums.size(); ++rank) {
    figures.perplexity_by_rank.push_back(std::exp(-sums[rank] / shown[rank]));
    figures.examination[rank] /= shown[rank];
    sum += sums[rank];
  }
  figures.perplexity = std::exp(-sum / static_cast<double>(lists.shown()));
  figures.log_likelihood /= static_cast<double>(lists.size());
  return figures;
}

}  // namespace olrank
