#include "core/clicks/click_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "core/math/pair_loss.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

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

/// A probability for each document, with a prior of the weight of two examinations and the mean `level`.
class AttractionByDocument final : public Attraction {
 public:
  AttractionByDocument(std::int64_t docs, double level)
      : Attraction(docs, level), prior_{2.0 * level, 2.0 * (1.0 - level)} {}

  void maximise() override {
    for (Coin& coin : coins_) coin.maximise(prior_);
  }
  double log_prior() const override {
    double sum = 0.0;
    for (const Coin& coin : coins_) sum += coin.log_prior(prior_);
    return sum;
  }

 private:
  CoinPrior prior_;
};

/// 1 for each: clicks tell of examination alone.
class CertainAttraction final : public Attraction {
 public:
  explicit CertainAttraction(std::int64_t docs) : Attraction(docs, 1.0) {}
  void maximise() override {}
  double log_prior() const override { return 0.0; }
};

/// σ(w·x + b) of the documents' inputs x, with a standard normal prior for w: logistic regression on
/// expected counts. `lists` says how often each document is counted at most. A step solves with a bound of
/// the curvature that holds for all parameters, ¼ Σ nₓ x xᵀ + I, so that no step can lead downwards
/// (Böhning and Lindsay, "Monotonicity of quadratic-approximation algorithms", AISM 1988) and one factor
/// serves all of them.
class AttractionByInputs final : public Attraction {
 public:
  AttractionByInputs(const ClickDocs& docs, const ClickLists& lists, double level)
      : Attraction(docs.count, level), docs_(docs), size_(docs.columns + 1), weights_(size_, 0.0) {
    if (docs.columns > kMostColumns) {
      throw_error<InvalidArgument>(
          "The documents have {} inputs, and two-tower takes at most {}: choose another --model.",
          docs.columns, kMostColumns);
    }
    weights_.back() = std::log(level / (1.0 - level));
    bound_curvature(lists);
    factorise();
  }

  void maximise() override {
    constexpr int kSteps = 5;
    for (int step = 0; step < kSteps; ++step) take_step();
    set_probabilities();
    for (Coin& coin : coins_) coin.yes = coin.no = 0.0;
  }

  double log_prior() const override {
    double sum = 0.0;
    for (std::int64_t k = 0; k + 1 < size_; ++k) sum -= 0.5 * weights_[k] * weights_[k];
    return sum;
  }

 private:
  static constexpr std::int64_t kMostColumns = 2000;

  std::span<const float> row(std::int64_t doc) const {
    return std::span(docs_.inputs).subspan(doc * docs_.columns, docs_.columns);
  }
  double logit(std::span<const float> row) const {
    double sum = weights_.back();
    for (std::size_t k = 0; k < row.size(); ++k) sum += weights_[k] * row[k];
    return sum;
  }

  void bound_curvature(const ClickLists& lists) {
    std::vector<double> times(docs_.count, 0.0);
    for (std::int64_t list = 0; list < lists.size(); ++list) {
      for (const std::int32_t doc : lists[list].docs) times[doc] += 1.0;
    }
    factor_.assign(size_ * size_, 0.0);
    for (std::int64_t doc = 0; doc < docs_.count; ++doc) {
      if (times[doc] == 0.0) continue;
      const auto x = row(doc);
      for (std::int64_t i = 0; i < size_; ++i) {
        const double scaled = 0.25 * times[doc] * (i + 1 < size_ ? x[i] : 1.0);
        if (scaled == 0.0) continue;
        double* target = &factor_[i * size_];
        for (std::int64_t j = 0; j < i; ++j) target[j] += scaled * x[j];
        target[i] += scaled * (i + 1 < size_ ? x[i] : 1.0);
      }
    }
    for (std::int64_t i = 0; i + 1 < size_; ++i) factor_[i * size_ + i] += 1.0;
  }

  /// Cholesky, in the lower triangle. The matrix is positive definite: but for b, it has I.
  void factorise() {
    for (std::int64_t i = 0; i < size_; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        double sum = factor_[i * size_ + j];
        for (std::int64_t k = 0; k < j; ++k) sum -= factor_[i * size_ + k] * factor_[j * size_ + k];
        factor_[i * size_ + j] = j == i ? std::sqrt(std::max(sum, 1e-12)) : sum / factor_[j * size_ + j];
      }
    }
  }

  void take_step() {
    step_.assign(size_, 0.0);
    for (std::int64_t doc = 0; doc < docs_.count; ++doc) {
      const Coin& coin = coins_[doc];
      const double weight = coin.yes + coin.no;
      if (weight == 0.0) continue;
      const auto x = row(doc);
      const double slope = -pair_term_slope(sigmoid(logit(x)), weight, coin.yes);
      for (std::size_t k = 0; k < x.size(); ++k) step_[k] += slope * x[k];
      step_.back() += slope;
    }
    for (std::int64_t k = 0; k + 1 < size_; ++k) step_[k] -= weights_[k];
    for (std::int64_t i = 0; i < size_; ++i) {
      for (std::int64_t k = 0; k < i; ++k) step_[i] -= factor_[i * size_ + k] * step_[k];
      step_[i] /= factor_[i * size_ + i];
    }
    for (std::int64_t i = size_; i-- > 0;) {
      for (std::int64_t k = i + 1; k < size_; ++k) step_[i] -= factor_[k * size_ + i] * step_[k];
      step_[i] /= factor_[i * size_ + i];
    }
    for (std::int64_t k = 0; k < size_; ++k) weights_[k] += step_[k];
  }

  void set_probabilities() {
    constexpr double kLeast = 1e-9;
    for (std::int64_t doc = 0; doc < docs_.count; ++doc)
      coins_[doc].probability = std::clamp(sigmoid(logit(row(doc))), kLeast, 1.0 - kLeast);
  }

  const ClickDocs& docs_;
  std::int64_t size_;            // inputs, and one for b
  std::vector<double> weights_;  // w, then b
  std::vector<double> factor_;   // [size_ × size_]
  std::vector<double> step_;
};

std::unique_ptr<Attraction> make_attraction(FittedModel model, const ClickLists& lists,
                                            const ClickDocs& docs) {
  if (model == FittedModel::kRankOnly) return std::make_unique<CertainAttraction>(docs.count);
  const double level = first_rank_level(lists);
  if (goes_by_inputs(model)) return std::make_unique<AttractionByInputs>(docs, lists, level);
  return std::make_unique<AttractionByDocument>(docs.count, level);
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

/// The first rank of the group that a rank is in; shortens the way there.
std::int64_t root_of(std::vector<std::int64_t>& parents, std::int64_t rank) {
  while (parents[rank] != rank) rank = parents[rank] = parents[parents[rank]];
  return rank;
}

}  // namespace

FittedClicks fit_clicks(FittedModel model, const ClickLists& lists, const ClickDocs& docs,
                        std::int64_t ranks, const ClickFitSettings& settings) {
  FittedClicks fit;
  fit.model = model;
  fit.reading = make_reading_model(model, ranks, docs.count);
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
        const double trust = fit.reading->trust(rank);
        // A click below what the model reads counts neither as one nor as none, and one by trust as none.
        const double attracted = attraction[rank] / (attraction[rank] + (1.0 - attraction[rank]) * trust);
        const double yes = list.clicks[rank] != 0 ? examined[rank] * attracted : 0.0;
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

RankLinks find_rank_links(const ClickLists& lists, std::int64_t docs) {
  // The ranks of each document, gathered by counting.
  std::vector<std::int64_t> begins(docs + 1, 0);
  for (std::int64_t list = 0; list < lists.size(); ++list) {
    for (const std::int32_t doc : lists[list].docs) ++begins[doc + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::int64_t> ends(begins.begin(), begins.end() - 1);
  std::vector<std::int32_t> ranks(lists.shown());
  for (std::int64_t list = 0; list < lists.size(); ++list) {
    std::int32_t rank = 0;
    for (const std::int32_t doc : lists[list].docs) ranks[ends[doc]++] = rank++;
  }

  RankLinks links;
  links.by_rank.assign(lists.ranks(), 0);
  std::vector<std::int64_t> parents(lists.ranks());
  std::iota(parents.begin(), parents.end(), 0);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const auto begin = ranks.begin() + begins[doc];
    auto end = ranks.begin() + begins[doc + 1];
    if (begin == end) continue;
    ++links.docs;
    std::sort(begin, end);
    end = std::unique(begin, end);
    if (end - begin < 2) continue;
    ++links.moved;
    for (auto rank = begin; rank != end; ++rank) {
      ++links.by_rank[*rank];
      const std::int64_t one = root_of(parents, *begin);
      const std::int64_t other = root_of(parents, *rank);
      parents[std::max(one, other)] = std::min(one, other);
    }
  }
  std::map<std::int64_t, std::vector<std::int64_t>> groups;  // by their first ranks
  for (std::int64_t rank = 0; rank < lists.ranks(); ++rank) groups[root_of(parents, rank)].push_back(rank);
  for (auto& [first, group] : groups) links.groups.push_back(std::move(group));
  return links;
}

}  // namespace olrank
