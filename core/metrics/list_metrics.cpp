#include "core/metrics/list_metrics.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "core/throw_error.h"

namespace olrank {

GainTable gain_table(Gain gain) {
  GainTable table{};
  for (int grade = 0; grade <= kHighestGrade; ++grade) table[grade] = dcg_gain(grade, gain);
  return table;
}

void DiscountTable::reach(std::int64_t ranks) {
  for (auto rank = std::ssize(values_); rank < ranks; ++rank) {
    values_.push_back(dcg_discount(rank, discount_));
  }
}

double dcg_of_list(std::span<const std::uint8_t> shown_grades, const GainTable& gains,
                   std::span<const double> discounts) {
  assert(discounts.size() >= shown_grades.size());
  double sum = 0.0;
  for (std::size_t rank = 0; rank < shown_grades.size(); ++rank)
    sum += gains[shown_grades[rank]] * discounts[rank];
  return sum;
}

double ideal_dcg(const GradeCounts& counts, std::int64_t ranks, const GainTable& gains,
                 std::span<const double> discounts) {
  double sum = 0.0;
  std::int64_t rank = 0;
  for (std::size_t grade = kHighestGrade; grade > 0 && rank < ranks; --grade) {
    for (const std::int64_t end = std::min(ranks, rank + counts[grade]); rank < end; ++rank) {
      sum += gains[grade] * discounts[rank];
    }
  }
  return sum;
}

RandomDcg random_dcg(const GradeCounts& counts, std::int64_t ranks, const GainTable& gains,
                     std::span<const double> discounts) {
  double docs = 0.0;
  double gain_sum = 0.0;
  double gain_squares = 0.0;
  for (std::size_t grade = 0; grade < counts.size(); ++grade) {
    const auto count = static_cast<double>(counts[grade]);
    docs += count;
    gain_sum += count * gains[grade];
    gain_squares += count * gains[grade] * gains[grade];
  }
  if (docs == 0.0) return {};
  double weight_sum = 0.0;
  double weight_squares = 0.0;
  const std::int64_t shown = std::min(ranks, static_cast<std::int64_t>(docs));
  for (std::int64_t rank = 0; rank < shown; ++rank) {
    weight_sum += discounts[rank];
    weight_squares += discounts[rank] * discounts[rank];
  }
  RandomDcg dcg{gain_sum / docs * weight_sum, 0.0};
  // Ranks beyond the cutoff have discount 0. Hoeffding, "A combinatorial central limit theorem", 1951.
  if (docs > 1.0) {
    dcg.variance = std::max(0.0, (gain_squares - gain_sum * gain_sum / docs) *
                                     (weight_squares - weight_sum * weight_sum / docs) / (docs - 1.0));
  }
  return dcg;
}

std::int64_t misordered_pairs(std::span<const std::uint8_t> list_grades, int max_grade) {
  std::array<std::int64_t, kHighestGrade + 1> lower{};  // documents of a lower grade seen so far, by grade
  std::int64_t pairs = 0;
  for (const std::uint8_t grade : list_grades) {
    pairs += lower[grade];
    for (std::size_t higher = std::size_t{grade} + 1; higher <= static_cast<std::size_t>(max_grade);
         ++higher) {
      ++lower[higher];
    }
  }
  return pairs;
}

namespace {

/// Score and index packed into one integer whose ascending order is the ranking: the sort does not access
/// the scores again, and ties are broken by index.
template <class Score>
struct Place;

template <>
struct Place<float> {
  std::uint64_t key;

  static Place make(float score, std::uint32_t doc) {
    const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // −0 becomes +0
    const std::uint32_t descending = (bits >> 31) != 0 ? bits : bits ^ 0x7FFFFFFFU;
    return {std::uint64_t{descending} << 32 | doc};
  }
  std::int32_t doc() const { return static_cast<std::int32_t>(key & 0xFFFFFFFFU); }
  friend bool operator<(const Place& a, const Place& b) { return a.key < b.key; }
};

template <>
struct Place<double> {
  std::uint64_t key;
  std::uint32_t index;

  static Place make(double score, std::uint32_t doc) {
    const auto bits = std::bit_cast<std::uint64_t>(score + 0.0);
    return {(bits >> 63) != 0 ? bits : bits ^ 0x7FFFFFFFFFFFFFFFULL, doc};
  }
  std::int32_t doc() const { return static_cast<std::int32_t>(index); }
  friend bool operator<(const Place& a, const Place& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};

template <class Score>
std::int64_t first_nan(std::span<const Score> scores) {
  bool found = false;
  for (const Score score : scores) found |= score != score;  // NOLINT(misc-redundant-expression): NaN
  if (!found) return -1;
  return std::find_if(scores.begin(), scores.end(),
                      [](Score score) { return score != score; }) -  // NOLINT(misc-redundant-expression)
         scores.begin();
}

template <class Score>
void sort_all(std::span<const Score> scores, std::span<std::int32_t> order, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const auto places = scratch.take<Place<Score>>(scores.size());
  for (std::size_t doc = 0; doc < scores.size(); ++doc) {
    places[doc] = Place<Score>::make(scores[doc], static_cast<std::uint32_t>(doc));
  }
  std::sort(places.begin(), places.end());
  for (std::size_t rank = 0; rank < order.size(); ++rank) order[rank] = places[rank].doc();
}

/// Keeps the best k sorted and compares every document with the last of them. Most documents fail this one
/// comparison: the i-th beats the k-th best before it with probability k/i.
template <class Score>
void insert_best(std::span<const Score> scores, std::span<std::int32_t> order, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const std::size_t kept = order.size();
  const auto best = scratch.take<Place<Score>>(kept);
  const auto insert = [&](Place<Score> place, std::size_t hole) {
    for (; hole > 0 && place < best[hole - 1]; --hole) best[hole] = best[hole - 1];
    best[hole] = place;
  };
  for (std::size_t doc = 0; doc < kept; ++doc) {
    insert(Place<Score>::make(scores[doc], static_cast<std::uint32_t>(doc)), doc);
  }
  for (std::size_t doc = kept; doc < scores.size(); ++doc) {
    const auto place = Place<Score>::make(scores[doc], static_cast<std::uint32_t>(doc));
    if (place < best[kept - 1]) insert(place, kept - 1);
  }
  for (std::size_t rank = 0; rank < kept; ++rank) order[rank] = best[rank].doc();
}

template <class Score>
std::int64_t rank(std::span<const Score> scores, std::span<std::int32_t> order, Scratch& scratch) {
  assert(order.size() <= scores.size());
  constexpr std::size_t kInsertionLimit = 32;
  if (const std::int64_t bad = first_nan(scores); bad >= 0) return bad;
  if (order.empty()) return -1;
  if (order.size() <= kInsertionLimit && order.size() < scores.size() / 2) {
    insert_best(scores, order, scratch);
  } else {
    sort_all(scores, order, scratch);
  }
  return -1;
}

}  // namespace

std::int64_t order_by_score(std::span<const float> scores, std::span<std::int32_t> order,
                            Scratch& scratch) {
  return rank(scores, order, scratch);
}

std::int64_t order_by_score(std::span<const double> scores, std::span<std::int32_t> order,
                            Scratch& scratch) {
  return rank(scores, order, scratch);
}

void OnlineSums::add(double ndcg, double discount) {
  ++rounds;
  ndcg_sum += ndcg;
  discounted_ndcg += weight * ndcg;
  weight *= discount;
}

double OnlineSums::mean_ndcg() const {
  return rounds > 0 ? ndcg_sum / static_cast<double>(rounds) : 0.0;
}

OnlineMetrics::OnlineMetrics(const OnlineOptions& options)
    : options_(options), gains_(gain_table(options.gain)) {
  if (options_.cutoff < 1) {
    throw_error<InvalidArgument>("The cutoff of online metrics must be at least 1, not {}.",
                                 options_.cutoff);
  }
  if (!(options_.discount > 0.0 && options_.discount <= 1.0)) {
    throw_error<InvalidArgument>("The discount of online metrics must be above 0 and at most 1, not {}.",
                                 options_.discount);
  }
  if (options_.max_grade < 0 || options_.max_grade > kHighestGrade) {
    throw_error<InvalidArgument>("The largest grade must be between 0 and {}, not {}.", kHighestGrade,
                                 options_.max_grade);
  }
  state_.exposure.resize(options_.cutoff * (options_.max_grade + 1));
}

double OnlineMetrics::observe(std::span<const std::uint8_t> grades, std::span<const std::int32_t> list) {
  if (list.size() != grades.size()) {
    throw_error<InvalidArgument>(
        "The list has {} of the query's {} documents, but regret is defined over all of them.", list.size(),
        grades.size());
  }
  const auto docs = std::ssize(list);
  const std::int64_t shown = std::min(options_.cutoff, docs);
  list_grades_.resize(list.size());
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    assert(list[rank] >= 0 && list[rank] < docs);
    list_grades_[rank] = grades[list[rank]];
    assert(list_grades_[rank] <= options_.max_grade);
  }
  discounts_.reach(shown);
  const std::span<const std::uint8_t> all(list_grades_);
  const double ideal = ideal_dcg(count_grades(grades), shown, gains_, discounts_.values());
  const double dcg = dcg_of_list(all.first(shown), gains_, discounts_.values());
  const double ndcg = ideal > 0.0 ? dcg / ideal : 0.0;

  for (std::int64_t rank = 0; rank < shown; ++rank) {
    const std::int64_t grade = list_grades_[rank];
    ++state_.exposure[rank * (options_.max_grade + 1) + grade];
  }
  state_.add(ndcg, options_.discount);
  state_.regret += misordered_pairs(all, options_.max_grade);
  return ndcg;
}

std::int64_t OnlineMetrics::exposure(std::int64_t rank, int grade) const {
  assert(rank >= 0 && rank < options_.cutoff && grade >= 0 && grade <= options_.max_grade);
  return state_.exposure[rank * (options_.max_grade + 1) + grade];
}

void OnlineMetrics::restore(OnlineState state) {
  if (state.exposure.size() != state_.exposure.size()) {
    throw_error<InvalidArgument>(
        "The saved online metrics have {} exposure counts instead of {}: they were collected with another "
        "cutoff or largest grade.",
        state.exposure.size(), state_.exposure.size());
  }
  state_ = std::move(state);
}

RandomOnline::RandomOnline(const OnlineOptions& options)
    : options_(options), gains_(gain_table(options.gain)) {}

RandomNdcg RandomOnline::observe(std::span<const std::uint8_t> grades) {
  const std::int64_t shown = std::min(options_.cutoff, std::ssize(grades));
  discounts_.reach(shown);
  const GradeCounts counts = count_grades(grades);
  const double ideal = ideal_dcg(counts, shown, gains_, discounts_.values());
  RandomNdcg ndcg;
  if (ideal > 0.0) {
    const RandomDcg dcg = random_dcg(counts, shown, gains_, discounts_.values());
    ndcg = {dcg.mean / ideal, dcg.variance / (ideal * ideal)};
  }
  sums_.add(ndcg.mean, options_.discount);
  regret_ += 0.5 * static_cast<double>(graded_pairs(counts));
  return ndcg;
}

}  // namespace olrank
