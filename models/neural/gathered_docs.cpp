#include "models/neural/gathered_docs.h"

#include <algorithm>

namespace olrank {

void GatheredDocs::start(const DocumentHistory& history) {
  for (const std::int32_t row : rows_) places_[row] = -1;
  history_ = &history;
  columns_ = history.features().features;
  if (std::ssize(places_) < history.docs()) places_.resize(history.docs(), -1);
  values_.clear();
  list_ends_.clear();
  rows_.clear();
  doc_numbers_.clear();
}

void GatheredDocs::take(std::int32_t row) {
  places_[row] = static_cast<std::int32_t>(rows_.size());
  rows_.push_back(row);
  doc_numbers_.push_back(history_->doc_numbers()[row]);
  if (!gathers_features_) return;
  const auto x = history_->features().doc(row);
  values_.insert(values_.end(), x.begin(), x.end());
}

std::int32_t GatheredDocs::place_of(std::int32_t row) {
  if (places_[row] >= 0) return places_[row];
  const std::span<const std::int64_t> ends = history_->list_ends();
  if (ends.empty()) {
    take(row);
    return places_[row];
  }
  const auto end = std::upper_bound(ends.begin(), ends.end(), std::int64_t{row});
  const std::int64_t begin = end == ends.begin() ? 0 : *(end - 1);
  for (std::int64_t other = begin; other < *end; ++other) take(static_cast<std::int32_t>(other));
  list_ends_.push_back(std::ssize(rows_));
  return places_[row];
}

}  // namespace olrank
