#include "sim/last_lists.h"

#include <cassert>
#include <cmath>

namespace olrank {

void LastLists::observe(double ndcg, const RandomNdcg& random) {
  if (std::ssize(lists_) == kRounds) lists_.pop_front();
  lists_.push_back({ndcg, random.mean, random.variance});
}

double LastLists::sum_of(double List::*figure) const {
  double sum = 0.0;
  for (const List& list : lists_) sum += list.*figure;
  return sum;
}

bool LastLists::worse_than_random() const {
  constexpr double kDeviations = 3.0;
  if (std::ssize(lists_) < kRounds) return false;
  const double margin = kDeviations * std::sqrt(sum_of(&List::random_variance));
  return sum_of(&List::ndcg) - sum_of(&List::random_mean) < -margin;
}

std::vector<double> LastLists::values() const {
  std::vector<double> values;
  for (const List& list : lists_)
    values.insert(values.end(), {list.ndcg, list.random_mean, list.random_variance});
  return values;
}

void LastLists::restore(std::span<const double> values) {
  assert(values.size() % 3 == 0);
  lists_.clear();
  for (std::size_t i = 0; i + 2 < values.size(); i += 3)
    lists_.push_back({values[i], values[i + 1], values[i + 2]});
}

}  // namespace olrank
