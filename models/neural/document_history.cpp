#include "models/neural/document_history.h"

#include <algorithm>
#include <cassert>

#include "core/feedback/preference_pairs.h"
#include "core/io/fingerprint.h"
#include "core/math/step_size.h"

namespace olrank {
namespace {

std::uint64_t packed(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint64_t>(first) << 32 | static_cast<std::uint32_t>(second);
}

template <class T>
void drop_front(std::vector<T>& values, std::int64_t count) {
  values.erase(values.begin(), values.begin() + count);
}

}  // namespace

DocumentHistory::DocumentHistory(std::int64_t features, const HistoryContent& content)
    : features_(features), content_(content) {
  const bool limited = content_.limit > 0;
  content_.pairs = content_.pairs || content_.lists || limited;
  content_.counts = content_.counts || limited;
}

std::int32_t DocumentHistory::row_of(const QueryDocs& query, std::int32_t doc) {
  if (content_.whole_lists) return row_in_list(query, doc);
  const auto [known, is_new] = row_of_.try_emplace(query.number(doc), static_cast<std::int32_t>(docs()));
  if (is_new) append_doc(query, doc);
  return known->second;
}

void DocumentHistory::append_doc(const QueryDocs& query, std::int32_t doc) {
  const auto x = query.features.doc(doc);
  values_.insert(values_.end(), x.begin(), x.end());
  doc_numbers_.push_back(query.number(doc));
}

DocumentHistory::ListKey DocumentHistory::key_of(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  Fingerprinter content;
  content.add(std::span<const std::int64_t>(numbers));
  return {content.value().high, content.value().low};
}

std::int32_t DocumentHistory::row_in_list(const QueryDocs& query, std::int32_t doc) {
  if (rows_by_number_.empty()) {
    std::vector<std::int64_t> numbers(query.docs());
    for (std::int32_t other = 0; other < query.docs(); ++other) numbers[other] = query.number(other);
    const auto [known, is_new] = list_of_.try_emplace(key_of(std::move(numbers)), std::ssize(list_ends_));
    if (is_new) {
      for (std::int32_t other = 0; other < query.docs(); ++other) append_doc(query, other);
      list_ends_.push_back(docs());
    }
    const FeatureMatrix all = features();
    for (std::int64_t row = all.list_begin(known->second); row < all.list_end(known->second); ++row)
      rows_by_number_.emplace_back(doc_numbers_[row], static_cast<std::int32_t>(row));
    std::sort(rows_by_number_.begin(), rows_by_number_.end());
  }
  const std::pair<std::int64_t, std::int32_t> first{query.number(doc), 0};
  return std::lower_bound(rows_by_number_.begin(), rows_by_number_.end(), first)->second;
}

void DocumentHistory::keep_whole_lists(std::vector<std::int32_t>& new_row) const {
  std::int64_t begin = 0;
  for (const std::int64_t end : list_ends_) {
    const std::span<std::int32_t> rows = std::span(new_row).subspan(begin, end - begin);
    if (std::any_of(rows.begin(), rows.end(), [](std::int32_t row) { return row >= 0; }))
      std::fill(rows.begin(), rows.end(), 0);
    begin = end;
  }
}

std::int32_t DocumentHistory::term_of(std::int32_t first, std::int32_t second) {
  const auto [known, is_new] =
      term_of_.try_emplace(packed(first, second), static_cast<std::int32_t>(terms_.size()));
  if (!is_new) return known->second;
  terms_.push_back({first, second, 0.0, 0.0});
  ++empty_;
  if (content_.counts) {
    count_.push_back(0);
    others_.append(0);
  }
  return known->second;
}

void DocumentHistory::add(const Feedback& feedback, std::span<const PreferencePair> pairs, double weight) {
  assert(feedback.query.features.features == features_);
  settle();
  drop_forgotten();
  rows_by_number_.clear();
  ever_ += std::ssize(pairs);
  if (content_.limit > 0) {
    pairs = pairs.last(std::min(pairs.size(), static_cast<std::size_t>(content_.limit)));
    forget(std::max<std::int64_t>(0, observed_ + std::ssize(pairs) - content_.limit));
  }
  const std::int64_t known_docs = docs();
  const auto examined =
      static_cast<std::size_t>(examined_documents(feedback.clicks, content_.examined_after));
  const ExaminedList list{std::ssize(list_rows_), std::ssize(observations_),
                          static_cast<std::int32_t>(examined), static_cast<std::int32_t>(pairs.size())};
  const auto place_of = [&](std::int32_t doc) {
    return static_cast<std::int32_t>(std::find(feedback.shown.begin(), feedback.shown.end(), doc) -
                                     feedback.shown.begin());
  };
  latest_.clear();
  latest_weight_ = weight;
  for (const auto& [winner, loser] : pairs) {
    const std::int32_t winner_row = row_of(feedback.query, winner);
    const std::int32_t loser_row = row_of(feedback.query, loser);
    const bool first_wins = feedback.query.number(winner) < feedback.query.number(loser);
    const std::int32_t term = first_wins ? term_of(winner_row, loser_row) : term_of(loser_row, winner_row);
    PairTerm& folded = terms_[term];
    if (folded.weight == 0.0) {
      ++entered_;
      --empty_;
    }
    folded.weight += weight;
    folded.labels += first_wins ? weight : 0.0;
    const bool placed = content_.lists;
    latest_.push_back(
        {term, placed ? place_of(winner) : -1, placed ? place_of(loser) : -1, first_wins ? 1 : 0});
    ++observed_;
  }
  if (content_.pairs) observations_.insert(observations_.end(), latest_.begin(), latest_.end());
  if (content_.limit > 0) weights_.insert(weights_.end(), latest_.size(), weight);
  if (content_.lists) {
    for (std::size_t rank = 0; rank < examined; ++rank) {
      list_rows_.push_back(row_of(feedback.query, feedback.shown[rank]));
      list_clicks_.push_back(feedback.clicks[rank]);
    }
    lists_.push_back(list);
  }
  const double largest_before = largest_doc_;
  note_sizes(known_docs);
  latest_docs_outgrow_ = documents_outgrow(largest_before, largest_doc_);
}

void DocumentHistory::note_sizes(std::int64_t first_row) {
  for (std::int64_t row = first_row; row < docs(); ++row) {
    double size = 0.0;
    for (const float value : features().doc(row)) size += double{value} * double{value};
    largest_doc_ = std::max(largest_doc_, size);
  }
}

void DocumentHistory::settle() {
  if (content_.counts) {
    for (const PairObservation& one : latest_) {
      ++count_[one.term];
      others_.add(one.term, 1);
    }
  }
  latest_.clear();
}

void DocumentHistory::drop_forgotten() {
  dropped_ += forgotten_;
  dropped_lists_ += forgotten_lists_;
  forgotten_ = forgotten_lists_ = 0;
  if (2 * dropped_ > std::ssize(observations_)) erase_dropped();
}

void DocumentHistory::erase_dropped() {
  if (dropped_ == 0) return;
  drop_front(observations_, dropped_);
  drop_front(weights_, dropped_);
  if (content_.lists) {
    const std::int64_t docs =
        dropped_lists_ < std::ssize(lists_) ? lists_[dropped_lists_].first_doc : std::ssize(list_rows_);
    drop_front(list_rows_, docs);
    drop_front(list_clicks_, docs);
    drop_front(lists_, dropped_lists_);
    for (ExaminedList& list : lists_) {
      list.first_doc -= docs;
      list.first_pair -= dropped_;
      if (list.first_pair >= 0) continue;  // the first list has lost some pairs
      list.pairs += static_cast<std::int32_t>(list.first_pair);
      list.first_pair = 0;
    }
  }
  dropped_ = dropped_lists_ = 0;
}

void DocumentHistory::forget(std::int64_t pairs) {
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const PairObservation& one = observations_[dropped_ + pair];
    const double weight = weights_[dropped_ + pair];
    PairTerm& term = terms_[one.term];
    others_.add(one.term, -1);
    term.weight -= weight;
    term.labels -= one.first_wins != 0 ? weight : 0.0;
    if (--count_[one.term] > 0) continue;
    term.weight = term.labels = 0.0;  // without the rounding of sums
    ++empty_;
  }
  forgotten_ = pairs;
  observed_ -= pairs;
  const auto live = std::span(lists_).subspan(dropped_lists_);
  while (forgotten_lists_ < std::ssize(live) &&
         live[forgotten_lists_].first_pair + live[forgotten_lists_].pairs <= dropped_ + pairs)
    ++forgotten_lists_;
}

void DocumentHistory::compact() {
  constexpr std::int64_t kFewTerms = 64;
  if (2 * empty_ <= std::max(std::ssize(terms_), kFewTerms)) return;
  drop_forgotten();
  erase_dropped();
  std::vector<std::int32_t> new_row(doc_numbers_.size(), -1);
  for (const PairTerm& term : terms_) {
    if (term.weight != 0.0) new_row[term.first] = new_row[term.second] = 0;
  }
  for (const std::int32_t row : list_rows_) new_row[row] = 0;
  keep_whole_lists(new_row);
  std::erase_if(list_ends_, [&](std::int64_t end) { return new_row[end - 1] < 0; });
  std::int32_t rows = 0;
  for (std::int64_t row = 0; row < docs(); ++row) {
    if (new_row[row] < 0) continue;
    const auto x = features().doc(row);
    std::copy(x.begin(), x.end(), values_.begin() + rows * features_);
    doc_numbers_[rows] = doc_numbers_[row];
    new_row[row] = rows++;
  }
  for (std::int64_t& end : list_ends_) end = new_row[end - 1] + 1;
  doc_numbers_.resize(rows);
  values_.resize(rows * features_);
  values_lineage_.renew();
  std::vector<std::int32_t> new_term(terms_.size(), -1);
  std::int32_t terms = 0;
  for (std::size_t t = 0; t < terms_.size(); ++t) {
    const PairTerm& term = terms_[t];
    if (term.weight == 0.0) continue;
    count_[terms] = count_[t];
    new_term[t] = terms;
    terms_[terms++] = {new_row[term.first], new_row[term.second], term.weight, term.labels};
  }
  terms_.resize(terms);
  count_.resize(terms);
  empty_ = 0;
  for (PairObservation& one : observations_) one.term = new_term[one.term];
  for (PairObservation& one : latest_) one.term = new_term[one.term];
  for (std::int32_t& row : list_rows_) row = new_row[row];
  rebuild_indices();
}

DocumentHistory::Lists DocumentHistory::lists() const {
  const PairLists live = pair_lists();
  Lists lists{{0}, {0}, live.rows, live.clicks};
  for (const ExaminedList& one : live.lists) {
    lists.first_doc.push_back(lists.first_doc.back() + one.docs);
    const std::int64_t end = one.first_pair + one.pairs - live.first_pair;
    lists.first_pair.push_back(static_cast<std::int32_t>(end));
  }
  if (!live.lists.empty()) lists.rows = live.rows.subspan(live.lists.front().first_doc);
  if (!live.lists.empty()) lists.clicks = live.clicks.subspan(live.lists.front().first_doc);
  return lists;
}

PairLists DocumentHistory::pair_lists() const {
  PairLists live = pair_lists_with_forgotten();
  live.lists = live.lists.subspan(forgotten_lists_);
  live.pairs = observations();
  live.first_pair += forgotten_;
  return live;
}

PairLists DocumentHistory::pair_lists_with_forgotten() const {
  return {std::span(lists_).subspan(dropped_lists_),  list_rows_, list_clicks_,
          std::span(observations_).subspan(dropped_), dropped_,   doc_numbers_};
}

std::span<const std::int32_t> DocumentHistory::latest_rows() const {
  if (lists_.empty()) return {};
  return std::span(list_rows_).subspan(lists_.back().first_doc);
}

std::span<const std::uint8_t> DocumentHistory::latest_clicks() const {
  if (lists_.empty()) return {};
  return std::span(list_clicks_).subspan(lists_.back().first_doc);
}

void DocumentHistory::save(StateWriter& state) const {
  state.put("history.features", features_);
  state.put("history.observed", observed_);
  state.put("history.doc_numbers", doc_numbers_);
  state.put_growing("history.values", values_lineage_, std::span<const float>(values_),
                    std::ssize(values_));
  if (content_.whole_lists) state.put("history.list_ends", list_ends_);
  std::vector<std::int32_t> ends;
  std::vector<double> sums;
  for (const PairTerm& term : terms_) {
    ends.insert(ends.end(), {term.first, term.second});
    sums.insert(sums.end(), {term.weight, term.labels});
  }
  state.put("history.term_docs", ends);
  state.put("history.term_sums", sums);
  std::vector<std::int32_t> seen;
  for (const PairObservation& one : observations())
    seen.insert(seen.end(), {one.term, one.winner, one.loser, one.first_wins});
  const Lists kept = lists();
  std::vector<std::int32_t> sizes;
  for (std::size_t one = 0; one + 1 < kept.first_doc.size(); ++one) {
    sizes.insert(sizes.end(), {kept.first_doc[one + 1] - kept.first_doc[one],
                               kept.first_pair[one + 1] - kept.first_pair[one]});
  }
  state.put("history.observations", seen);
  state.put("history.impressions", sizes);
  state.put("history.impression_rows", kept.rows);
  state.put("history.impression_clicks", kept.clicks);
  if (content_.counts) {
    std::vector<std::int64_t> counts = count_;
    for (const PairObservation& one : latest_) ++counts[one.term];
    state.put("history.term_counts", counts);
    state.put("history.entered", entered_);
  }
  if (content_.limit > 0) {
    state.put("history.weights", std::span(weights_).subspan(dropped_ + forgotten_));
    state.put("history.ever", ever_);
  }
}

void DocumentHistory::load(StateReader& state) {
  if (state.get_one<std::int64_t>("history.features") != features_) {
    state.fail("The saved history belongs to data with another number of features.");
  }
  ever_ = observed_ = state.get_one<std::int64_t>("history.observed");
  doc_numbers_ = state.get<std::int64_t>("history.doc_numbers");
  values_.resize(doc_numbers_.size() * static_cast<std::size_t>(features_));
  state.get_into("history.values", std::span(values_));
  values_lineage_.renew();
  if (content_.whole_lists) {
    list_ends_ = state.get<std::int64_t>("history.list_ends");
    if (!std::is_sorted(list_ends_.begin(), list_ends_.end()) ||
        (list_ends_.empty() ? 0 : list_ends_.back()) != docs())
      state.fail("The lists of the saved history do not hold its documents.");
  }
  const auto ends = state.get<std::int32_t>("history.term_docs");
  std::vector<double> sums(ends.size());
  state.get_into("history.term_sums", std::span(sums));
  terms_.clear();
  for (std::size_t i = 0; i + 1 < ends.size(); i += 2)
    terms_.push_back({ends[i], ends[i + 1], sums[i], sums[i + 1]});
  empty_ =
      std::count_if(terms_.begin(), terms_.end(), [](const PairTerm& term) { return term.weight == 0.0; });
  const auto seen = state.get<std::int32_t>("history.observations");
  observations_.clear();
  for (std::size_t i = 0; i + 3 < seen.size(); i += 4) {
    observations_.push_back({seen[i], seen[i + 1], seen[i + 2], seen[i + 3]});
  }
  const auto sizes = state.get<std::int32_t>("history.impressions");
  list_rows_ = state.get<std::int32_t>("history.impression_rows");
  list_clicks_ = state.get<std::uint8_t>("history.impression_clicks");
  lists_.clear();
  ExaminedList next;
  for (std::size_t i = 0; i + 1 < sizes.size(); i += 2) {
    next.docs = sizes[i];
    next.pairs = sizes[i + 1];
    lists_.push_back(next);
    next.first_doc += next.docs;
    next.first_pair += next.pairs;
  }
  if (content_.counts) {
    count_.resize(terms_.size());
    state.get_into("history.term_counts", std::span(count_));
    entered_ = state.get_one<std::int64_t>("history.entered");
  }
  if (content_.limit > 0) {
    weights_.resize(observations_.size());
    state.get_into("history.weights", std::span(weights_));
    ever_ = state.get_one<std::int64_t>("history.ever");
  }
  latest_.clear();
  dropped_ = dropped_lists_ = forgotten_ = forgotten_lists_ = 0;
  rebuild_indices();
}

void DocumentHistory::rebuild_indices() {
  row_of_.clear();
  list_of_.clear();
  std::int64_t first = 0;
  for (std::int64_t list = 0; list < std::ssize(list_ends_); ++list) {
    const std::int64_t begin = std::exchange(first, list_ends_[list]);
    list_of_.emplace(key_of({doc_numbers_.begin() + begin, doc_numbers_.begin() + first}), list);
  }
  for (std::size_t row = 0; row < doc_numbers_.size() && !content_.whole_lists; ++row)
    row_of_.emplace(doc_numbers_[row], static_cast<std::int32_t>(row));
  term_of_.clear();
  others_.clear();
  for (std::size_t term = 0; term < terms_.size(); ++term) {
    term_of_.emplace(packed(terms_[term].first, terms_[term].second), static_cast<std::int32_t>(term));
    if (content_.counts) others_.append(count_[term]);
  }
  largest_doc_ = 0.0;
  note_sizes(0);
}

}  // namespace olrank
