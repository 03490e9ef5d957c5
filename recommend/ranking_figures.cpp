#include "recommend/ranking_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/math/dcg.h"

namespace olrank {
namespace {

constexpr std::int64_t kUsersOfBlock = 16;

double held_out_gain(float rating, HeldOutGain gain) {
  return gain == HeldOutGain::kBinary ? 1.0 : std::exp2(static_cast<double>(rating)) - 1.0;
}

std::int64_t rank_of(std::span<const float> scores, std::int32_t item) {
  const float score = scores[item];
  std::int64_t above = 0;
  for (std::int32_t other = 0; other < item; ++other) above += scores[other] >= score ? 1 : 0;
  for (std::size_t other = item + 1; other < scores.size(); ++other) above += scores[other] > score ? 1 : 0;
  return above;
}

/// Judges the list of the user at `place` from the places of the items of `held_out` reviews alone. Scores
/// of excluded items are replaced.
void judge_user(RankingFigures& figures, HeldOutGain gain_form, std::int64_t place, std::span<float> scores,
                std::span<const std::int32_t> excluded, const Reviews& reviews,
                std::span<const std::int64_t> held_out) {
  for (const std::int32_t item : excluded) scores[item] = -std::numeric_limits<float>::infinity();
  std::vector<std::pair<std::int64_t, double>> ranked;  // with the gain
  std::vector<double> gains;
  for (const std::int64_t review : held_out) {
    const std::int32_t item = reviews.item[review];
    if (std::binary_search(excluded.begin(), excluded.end(), item)) continue;
    gains.push_back(held_out_gain(reviews.rating[review], gain_form));
    ranked.emplace_back(rank_of(scores, item), gains.back());
  }
  std::sort(gains.rbegin(), gains.rend());
  std::sort(ranked.begin(), ranked.end());
  for (std::size_t cutoff = 0; cutoff < figures.cutoffs.size(); ++cutoff) {
    const std::int64_t limit = figures.cutoffs[cutoff];
    double found = 0.0;
    double ideal = 0.0;
    for (const auto& [rank, gain] : ranked) {
      if (rank < limit) found += gain * dcg_discount(rank, Discount::kLog2);
    }
    for (std::int64_t rank = 0; rank < std::min<std::int64_t>(limit, std::ssize(gains)); ++rank)
      ideal += gains[rank] * dcg_discount(rank, Discount::kLog2);
    figures.ndcg[cutoff][place] = ideal > 0.0 ? found / ideal : 0.0;
    figures.hits[cutoff][place] = !ranked.empty() && ranked.front().first < limit ? 1.0 : 0.0;
  }
}

std::vector<std::vector<std::int64_t>> reviews_by_user(const Reviews& reviews,
                                                       std::span<const std::int64_t> numbers) {
  std::vector<std::vector<std::int64_t>> by_user(reviews.names.users.size());
  for (const std::int64_t review : numbers) by_user[reviews.user[review]].push_back(review);
  return by_user;
}

/// Keeps so many places, those of the largest values first; on ties the smaller number is first.
template <class Value>
void keep_largest(std::vector<std::int32_t>& places, std::span<const Value> values, std::int64_t count) {
  const auto end = places.begin() + std::clamp<std::int64_t>(count, 0, std::ssize(places));
  std::partial_sort(places.begin(), end, places.end(), [&](std::int32_t a, std::int32_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  });
  places.erase(end, places.end());
}

/// Judges every user of the figures: judge(place, scores of all items).
template <class Judge>
void judge_users(ExecutionContext& context, std::int64_t items, const RankingOptions& options,
                 RankingFigures& figures, Judge judge) {
  figures.cutoffs = options.cutoffs;
  figures.ndcg.assign(options.cutoffs.size(), std::vector<double>(figures.users.size(), 0.0));
  figures.hits = figures.ndcg;
  context.for_blocks(std::ssize(figures.users), kUsersOfBlock,
                     [&](std::int64_t begin, std::int64_t end, int) {
                       std::vector<float> scores(items);
                       for (std::int64_t place = begin; place < end; ++place)
                         judge(place, std::span<float>(scores));
                     });
}

}  // namespace

RankingFigures judge_recommender(ExecutionContext& context, const Recommender& recommender,
                                 const TrainingData& data, std::span<const std::int64_t> held_out,
                                 const RankingOptions& options) {
  const Reviews& reviews = *data.reviews;
  const auto by_user = reviews_by_user(reviews, held_out);
  RankingFigures figures;
  for (std::size_t user = 0; user < by_user.size(); ++user) {
    if (by_user[user].empty()) continue;
    if (data.by_user.count(static_cast<std::int64_t>(user)) == 0) {
      ++figures.without_training;
    } else {
      figures.users.push_back(static_cast<std::int32_t>(user));
    }
  }
  judge_users(context, reviews.names.items.size(), options, figures,
              [&](std::int64_t place, std::span<float> scores) {
                const std::int32_t user = figures.users[place];
                recommender.score(user, scores);
                judge_user(figures, options.gain, place, scores, data.by_user.others_of(user), reviews,
                           by_user[user]);
              });
  return figures;
}

RankingFigures figures_of_few_reviews(const RankingFigures& figures, const TrainingData& data,
                                      std::int64_t most) {
  RankingFigures few;
  few.cutoffs = figures.cutoffs;
  few.ndcg.resize(figures.cutoffs.size());
  few.hits.resize(figures.cutoffs.size());
  for (std::size_t place = 0; place < figures.users.size(); ++place) {
    if (data.by_user.count(figures.users[place]) > most) continue;
    few.users.push_back(figures.users[place]);
    for (std::size_t cutoff = 0; cutoff < figures.cutoffs.size(); ++cutoff) {
      few.ndcg[cutoff].push_back(figures.ndcg[cutoff][place]);
      few.hits[cutoff].push_back(figures.hits[cutoff][place]);
    }
  }
  return few;
}

RankingFigures judge_cold_start(ExecutionContext& context, const Recommender& recommender,
                                const Reviews& reviews, std::span<const std::int64_t> test,
                                std::int64_t known, std::int64_t most_known,
                                const RankingOptions& options) {
  const auto by_user = reviews_by_user(reviews, test);
  RankingFigures figures;
  for (std::size_t user = 0; user < by_user.size(); ++user) {
    if (std::ssize(by_user[user]) > most_known) figures.users.push_back(static_cast<std::int32_t>(user));
  }
  judge_users(
      context, reviews.names.items.size(), options, figures,
      [&](std::int64_t place, std::span<float> scores) {
        const std::vector<std::int64_t>& own = by_user[figures.users[place]];
        std::vector<KnownReview> given;
        std::vector<std::int32_t> excluded;
        for (std::int64_t review = 0; review < most_known; ++review) {
          const std::int64_t number = own[review];
          excluded.push_back(reviews.item[number]);
          if (review < known)
            given.push_back({reviews.item[number], reviews.rating[number], reviews.mentions_of(number)});
        }
        std::sort(excluded.begin(), excluded.end());
        recommender.score_new_user(given, scores);
        judge_user(figures, options.gain, place, scores, excluded, reviews,
                   std::span(own).subspan(static_cast<std::size_t>(most_known)));
      });
  return figures;
}

std::vector<std::int32_t> best_items(std::span<const float> scores, std::span<const std::int32_t> excluded,
                                     std::int64_t count) {
  std::vector<std::int32_t> items;
  items.reserve(scores.size());
  auto next = excluded.begin();
  for (std::int32_t item = 0; item < std::ssize(scores); ++item) {
    while (next != excluded.end() && *next < item) ++next;
    if (next != excluded.end() && *next == item) continue;
    items.push_back(item);
  }
  keep_largest(items, scores, count);
  return items;
}

std::vector<std::int32_t> largest_places(std::span<const double> values, std::int64_t count) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  keep_largest(order, values, count);
  return order;
}

}  // namespace olrank
