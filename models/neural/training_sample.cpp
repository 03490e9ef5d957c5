#include "models/neural/training_sample.h"

#include <algorithm>

namespace olrank {

void TrainingSample::start(const DocumentHistory& history) {
  history_ = &history;
  docs_.start(history);
  for (const std::int32_t term : term_numbers_) local_term_[term] = -1;
  if (local_term_.size() < history.terms().size()) local_term_.resize(history.terms().size(), -1);
  terms_.clear();
  sources_.clear();
  term_numbers_.clear();
  lists_.clear();
  list_rows_.clear();
  list_clicks_.clear();
  pairs_.clear();
  scales_.clear();
  counted_.clear();
}

std::size_t TrainingSample::local_term(std::int32_t term) {
  std::int32_t& known = local_term_[term];
  if (known < 0) {
    known = static_cast<std::int32_t>(terms_.size());
    const PairTerm& whole = history_->terms()[term];
    terms_.push_back({docs_.place_of(whole.first), docs_.place_of(whole.second), 0.0, 0.0});
    term_numbers_.push_back(term);
    if (!history_->content().lists) sources_.push_back({.term = term});
  }
  return static_cast<std::size_t>(known);
}

void TrainingSample::draw(const DocumentHistory& history, PhiloxKey key, std::uint32_t round,
                          std::int64_t replay) {
  start(history);
  if (history.content().lists) {
    draw_pairs(key, round, replay);
  } else {
    take_own();
    draw_terms(key, round, replay);
    fold_sources();
  }
}

void TrainingSample::take_changes(const DocumentHistory& history) {
  start(history);
  if (history.content().lists) {
    const auto all = std::ssize(history.observations());
    for (std::int64_t pair = all - std::ssize(history.latest()); pair < all; ++pair)
      counted_.push_back({pair, 1.0});
    take_pairs(counted_);
    return;
  }
  take_own();
  for (SampledTerm& source : sources_) weigh_others(source);
  fold_sources();
}

void TrainingSample::take_own() {
  const double weight = history_->latest_weight();
  for (const PairObservation& one : history_->latest()) {
    SampledTerm& source = sources_[local_term(one.term)];
    source.own_weight += weight;
    source.own_labels += one.first_wins != 0 ? weight : 0.0;
  }
}

void TrainingSample::draw_terms(PhiloxKey key, std::uint32_t round, std::int64_t replay) {
  const std::int64_t others = history_->others();
  const bool takes_all = others <= replay;
  draws_.assign(terms_.size(), 0);
  const auto draw_one = [&](std::int32_t term) {
    const std::size_t local = local_term(term);
    if (local >= draws_.size()) draws_.resize(local + 1);
    ++draws_[local];
  };
  if (takes_all) {
    for (std::int32_t term = 0; term < std::ssize(history_->terms()); ++term) {
      if (history_->others_of(term) > 0) draw_one(term);
    }
  } else {
    for (std::int64_t number = 0; number < replay; ++number) {
      RngStream coins(key, round, 0, static_cast<std::uint32_t>(number));
      draw_one(history_->term_of_other(coins.index_of(others)));
    }
  }
  const double scale = static_cast<double>(others) / static_cast<double>(replay);
  for (std::size_t local = 0; local < sources_.size(); ++local) {
    SampledTerm& source = sources_[local];
    weigh_others(source);
    if (draws_[local] == 0) continue;
    const double labels = history_->terms()[source.term].labels - source.own_labels;
    const double share = takes_all ? 1.0
                                   : scale * static_cast<double>(draws_[local]) /
                                         static_cast<double>(history_->others_of(source.term));
    source.drawn_weight = source.others_weight * share;
    source.drawn_labels = labels * share;
  }
}

void TrainingSample::weigh_others(SampledTerm& source) const {
  // Without the rounding of sums where there are none.
  if (history_->others_of(source.term) == 0) return;
  source.others_weight = std::max(0.0, history_->terms()[source.term].weight - source.own_weight);
}

void TrainingSample::fold_sources() {
  for (std::size_t local = 0; local < sources_.size(); ++local) {
    const SampledTerm& source = sources_[local];
    terms_[local].weight = source.own_weight + source.drawn_weight;
    terms_[local].labels = source.own_labels + source.drawn_labels;
  }
}

void TrainingSample::draw_pairs(PhiloxKey key, std::uint32_t round, std::int64_t replay) {
  const auto all = std::ssize(history_->observations());
  const std::int64_t others = all - std::ssize(history_->latest());
  if (others <= replay) {
    for (std::int64_t pair = 0; pair < others; ++pair) counted_.push_back({pair, 1.0});
  } else {
    const double scale = static_cast<double>(others) / static_cast<double>(replay);
    for (std::int64_t number = 0; number < replay; ++number) {
      RngStream coins(key, round, 0, static_cast<std::uint32_t>(number));
      counted_.push_back({coins.index_of(others), scale});
    }
    std::sort(counted_.begin(), counted_.end(),
              [](const CountedPair& a, const CountedPair& b) { return a.number < b.number; });
  }
  for (std::int64_t pair = others; pair < all; ++pair) counted_.push_back({pair, 1.0});
  take_pairs(counted_);
}

void TrainingSample::take_pairs(std::span<const CountedPair> counted) {
  const PairLists all = history_->pair_lists();
  std::int64_t latest_list = -1;
  std::int64_t latest_pair = -1;
  for (const CountedPair& one : counted) {
    if (one.number == latest_pair) {  // drawn several times
      scales_.back() += one.scale;
      continue;
    }
    latest_pair = one.number;
    const auto after = std::upper_bound(
        all.lists.begin(), all.lists.end(), one.number,
        [](std::int64_t pair, const ExaminedList& list) { return pair < list.first_pair; });
    const std::int64_t number = after - all.lists.begin() - 1;
    const ExaminedList& list = all.lists[number];
    if (number != latest_list) {
      latest_list = number;
      lists_.push_back({std::ssize(list_rows_), std::ssize(pairs_), list.docs, 0});
      for (std::int64_t doc = list.first_doc; doc < list.first_doc + list.docs; ++doc) {
        list_rows_.push_back(docs_.place_of(all.rows[doc]));
        list_clicks_.push_back(all.clicks[doc]);
      }
    }
    ++lists_.back().pairs;
    PairObservation seen = all.pairs[one.number];
    seen.term = static_cast<std::int32_t>(local_term(seen.term));
    pairs_.push_back(seen);
    scales_.push_back(one.scale);
  }
  for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
    PairTerm& term = terms_[pairs_[pair].term];
    term.weight += scales_[pair];
    term.labels += pairs_[pair].first_wins != 0 ? scales_[pair] : 0.0;
  }
}

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
