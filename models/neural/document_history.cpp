#include "models/neural/document_history.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "core/io/fingerprint.h"
#include "core/math/dcg.h"
#include "core/math/optimizer_step.h"

namespace olrank {
namespace {

std::uint64_t packed(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint64_t>(first) << 32 | static_cast<std::uint32_t>(second);
}

}  // namespace

DocumentHistory::DocumentHistory(std::int64_t features, const HistoryContent& content)
    : features_(features), content_(content) {
  content_.pairs = content_.pairs || content_.lists;
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

std::int32_t DocumentHistory::term_of(std::int32_t first, std::int32_t second) {
  const auto [known, is_new] =
      term_of_.try_emplace(packed(first, second), static_cast<std::int32_t>(terms_.size()));
  if (!is_new) return known->second;
  terms_.push_back({first, second, 0.0, 0.0});
  if (content_.counts) {
    count_.push_back(0);
    others_.append(0);
  }
  return known->second;
}

void DocumentHistory::add(const Feedback& feedback, std::span<const PreferencePair> pairs, double weight) {
  assert(feedback.query.features.features == features_);
  settle();
  rows_by_number_.clear();
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
    folded.weight += weight;
    folded.labels += first_wins ? weight : 0.0;
    const bool placed = content_.lists;
    latest_.push_back(
        {term, placed ? place_of(winner) : -1, placed ? place_of(loser) : -1, first_wins ? 1 : 0});
    ++observed_;
  }
  if (content_.pairs) observations_.insert(observations_.end(), latest_.begin(), latest_.end());
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

DocumentHistory::Lists DocumentHistory::lists() const {
  Lists lists{{0}, {0}, list_rows_, list_clicks_};
  for (const ExaminedList& one : lists_) {
    lists.first_doc.push_back(lists.first_doc.back() + one.docs);
    lists.first_pair.push_back(static_cast<std::int32_t>(one.first_pair + one.pairs));
  }
  return lists;
}

PairLists DocumentHistory::pair_lists() const {
  return {lists_, list_rows_, list_clicks_, observations_, doc_numbers_};
}

std::span<const std::int32_t> DocumentHistory::latest_rows() const {
  if (lists_.empty()) return {};
  return std::span(list_rows_).subspan(lists_.back().first_doc);
}

std::span<const std::uint8_t> DocumentHistory::latest_clicks() const {
  if (lists_.empty()) return {};
  return std::span(list_clicks_).subspan(lists_.back().first_doc);
}

void DocumentHistory::fields(StateFields& state) {
  std::int64_t features = features_;
  state.numbers("history.features", features);
  state.require(features == features_,
                "The saved history belongs to data with another number of features.");
  state.numbers("history.observed", observed_);
  state.any("history.doc_numbers", doc_numbers_);
  if (state.reads()) values_.resize(doc_numbers_.size() * static_cast<std::size_t>(features_));
  state.growing("history.values", values_lineage_, values_);
  if (content_.whole_lists) {
    state.any("history.list_ends", list_ends_);
    state.require(std::is_sorted(list_ends_.begin(), list_ends_.end()) &&
                      (list_ends_.empty() ? 0 : list_ends_.back()) == docs(),
                  "The lists of the saved history do not hold its documents.");
  }
  std::vector<std::int32_t> ends;
  std::vector<double> sums;
  for (const PairTerm& term : terms_) {
    ends.insert(ends.end(), {term.first, term.second});
    sums.insert(sums.end(), {term.weight, term.labels});
  }
  std::vector<std::int32_t> seen;
  for (const PairObservation& one : observations_)
    seen.insert(seen.end(), {one.term, one.winner, one.loser, one.first_wins});
  std::vector<std::int32_t> sizes;
  for (const ExaminedList& list : lists_) sizes.insert(sizes.end(), {list.docs, list.pairs});
  state.any("history.term_docs", ends);
  sums.resize(ends.size());
  state.sized("history.term_sums", sums);
  state.any("history.observations", seen);
  state.any("history.impressions", sizes);
  state.any("history.impression_rows", list_rows_);
  state.any("history.impression_clicks", list_clicks_);
  auto terms = static_cast<std::int64_t>(ends.size() / 2);
  if (content_.counts) {
    std::vector<std::int64_t> counts = count_;
    for (const PairObservation& one : latest_) ++counts[one.term];
    counts.resize(terms);
    state.sized("history.term_counts", counts);
    state.number("history.entered", terms, [&](std::int64_t entered) {
      state.require(entered == terms,
                    "The saved history has forgotten pairs, which histories of this version keep.");
      count_ = std::move(counts);
    });
  }
  if (!state.reads()) return;
  terms_.clear();
  for (std::size_t i = 0; i + 1 < ends.size(); i += 2)
    terms_.push_back({ends[i], ends[i + 1], sums[i], sums[i + 1]});
  observations_.clear();
  for (std::size_t i = 0; i + 3 < seen.size(); i += 4)
    observations_.push_back({seen[i], seen[i + 1], seen[i + 2], seen[i + 3]});
  lists_.clear();
  ExaminedList next;
  for (std::size_t i = 0; i + 1 < sizes.size(); i += 2) {
    next.docs = sizes[i];
    next.pairs = sizes[i + 1];
    lists_.push_back(next);
    next.first_doc += next.docs;
    next.first_pair += next.pairs;
  }
  latest_.clear();
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

void ndcg_changes(const PairLists& lists, std::span<const float> scores, std::vector<double>& changes) {
  changes.resize(lists.pairs.size());
  std::vector<std::int32_t> order;
  std::vector<double> discount_of;
  for (const ExaminedList& list : lists.lists) {
    const auto rows = lists.rows.subspan(list.first_doc, list.docs);
    const auto clicks = lists.clicks.subspan(list.first_doc, rows.size());
    order.resize(rows.size());
    std::iota(order.begin(), order.end(), 0);
    const auto score_at = [&](std::int32_t place) { return scores[rows[place]]; };
    // Ties break by document.
    const auto number_at = [&](std::int32_t place) { return lists.doc_numbers[rows[place]]; };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return comes_before(score_at(a), number_at(a), score_at(b), number_at(b));
    });
    discount_of.resize(rows.size());
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      discount_of[order[rank]] = dcg_discount(static_cast<std::int64_t>(rank), Discount::kLog2);
    }
    double ideal = 0.0;
    std::int64_t clicked = 0;
    for (const std::uint8_t click : clicks) {
      if (click != 0) ideal += kClickGain * dcg_discount(clicked++, Discount::kLog2);
    }
    for (std::int64_t pair = list.first_pair; pair < list.first_pair + list.pairs; ++pair) {
      const PairObservation& seen = lists.pairs[pair];
      changes[pair] = ndcg_change(kClickGain, discount_of[seen.winner], discount_of[seen.loser], ideal);
    }
  }
}

void fold_pairs(std::span<const PairTerm> terms, std::span<const PairObservation> pairs,
                std::span<const double> weights, std::vector<PairTerm>& weighted) {
  assert(weights.size() == pairs.size());
  weighted.assign(terms.begin(), terms.end());
  for (PairTerm& term : weighted) term.weight = term.labels = 0.0;
  for (std::size_t at = 0; at < pairs.size(); ++at) {
    PairTerm& term = weighted[pairs[at].term];
    term.weight += weights[at];
    if (pairs[at].first_wins != 0) term.labels += weights[at];
  }
}

}  // namespace olrank
