#include "core/metrics/online.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/throw_error.h"

namespace olrank {

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
