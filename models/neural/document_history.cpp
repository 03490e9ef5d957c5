#include "models/neural/document_history.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "core/feedback/preference_pairs.h"
#include "core/math/dcg.h"
#include "core/math/score_order.h"
#include "core/math/step_size.h"

namespace olrank {
namespace {

std::uint64_t packed(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint64_t>(first) << 32 | static_cast<std::uint32_t>(second);
}

}  // namespace

std::int32_t DocumentHistory::row_of(const QueryDocs& query, std::int32_t doc) {
  const std::int64_t number = query.number(doc);
  const auto [known, is_new] = row_of_.try_emplace(number, static_cast<std::int32_t>(docs()));
  if (is_new) {
    const auto x = query.features.doc(doc);
    values_.insert(values_.end(), x.begin(), x.end());
    doc_numbers_.push_back(number);
  }
  return known->second;
}

std::int32_t DocumentHistory::term_of(std::int32_t first, std::int32_t second) {
  const auto [known, is_new] =
      term_of_.try_emplace(packed(first, second), static_cast<std::int32_t>(terms_.size()));
  if (is_new) terms_.push_back({first, second, 0.0, 0.0});
  return known->second;
}

void DocumentHistory::add(const Feedback& feedback, std::span<const PreferencePair> pairs, double weight) {
  assert(feedback.query.features.features == features_);
  const std::int64_t known_docs = docs();
  const auto examined = static_cast<std::size_t>(examined_documents(feedback.clicks));
  Impression impression{std::ssize(impression_rows_), std::ssize(observations_),
                        static_cast<std::int32_t>(examined), static_cast<std::int32_t>(pairs.size())};
  const auto place_of = [&](std::int32_t doc) {
    return static_cast<std::int32_t>(std::find(feedback.shown.begin(), feedback.shown.end(), doc) -
                                     feedback.shown.begin());
  };
  for (const auto& [winner, loser] : pairs) {
    const std::int32_t winner_row = row_of(feedback.query, winner);
    const std::int32_t loser_row = row_of(feedback.query, loser);
    const bool first_wins = feedback.query.number(winner) < feedback.query.number(loser);
    const std::int32_t term = first_wins ? term_of(winner_row, loser_row) : term_of(loser_row, winner_row);
    PairTerm& folded = terms_[term];
    folded.weight += weight;
    folded.labels += first_wins ? weight : 0.0;
    const bool placed = keeps_impressions_;
    observations_.push_back(
        {term, placed ? place_of(winner) : -1, placed ? place_of(loser) : -1, first_wins ? 1 : 0});
    ++observed_;
  }
  if (keeps_impressions_) {
    for (std::size_t rank = 0; rank < examined; ++rank) {
      impression_rows_.push_back(row_of(feedback.query, feedback.shown[rank]));
      impression_clicks_.push_back(feedback.clicks[rank]);
    }
    impressions_.push_back(impression);
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

DocumentHistory::Lists DocumentHistory::lists() const {
  Lists lists{{0}, {0}, impression_rows_, impression_clicks_};
  for (const Impression& one : impressions_) {
    lists.first_doc.push_back(lists.first_doc.back() + one.docs);
    lists.first_pair.push_back(lists.first_pair.back() + one.pairs);
  }
  return lists;
}

std::span<const std::int32_t> DocumentHistory::latest_rows() const {
  if (impressions_.empty()) return {};
  return std::span(impression_rows_).subspan(impressions_.back().first_doc);
}

std::span<const std::uint8_t> DocumentHistory::latest_clicks() const {
  if (impressions_.empty()) return {};
  return std::span(impression_clicks_).subspan(impressions_.back().first_doc);
}

void DocumentHistory::ndcg_changes(std::span<const float> scores, std::vector<double>& changes) const {
  assert(keeps_impressions_ && std::ssize(scores) == docs());
  changes.resize(observations_.size());
  std::vector<std::int32_t> order;
  std::vector<double> discount_of;
  for (const Impression& impression : impressions_) {
    const auto rows = std::span(impression_rows_).subspan(impression.first_doc, impression.docs);
    const auto clicks = std::span(impression_clicks_).subspan(impression.first_doc, rows.size());
    order.resize(rows.size());
    std::iota(order.begin(), order.end(), 0);
    const auto score_at = [&](std::int32_t place) { return scores[rows[place]]; };
    // Ties break by document.
    const auto number_at = [&](std::int32_t place) { return doc_numbers_[rows[place]]; };
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
    for (std::int32_t pair = 0; pair < impression.pairs; ++pair) {
      const auto at = static_cast<std::size_t>(impression.first_pair + pair);
      const PairObservation& seen = observations_[at];
      changes[at] = ndcg_change(kClickGain, discount_of[seen.winner], discount_of[seen.loser], ideal);
    }
  }
}

void DocumentHistory::fold(std::span<const double> weights, std::vector<PairTerm>& weighted) const {
  assert(weights.size() == observations_.size());
  weighted.assign(terms_.begin(), terms_.end());
  for (PairTerm& term : weighted) term.weight = term.labels = 0.0;
  for (std::size_t at = 0; at < observations_.size(); ++at) {
    PairTerm& term = weighted[observations_[at].term];
    term.weight += weights[at];
    if (observations_[at].first_wins != 0) term.labels += weights[at];
  }
}

void DocumentHistory::save(StateWriter& state) const {
  state.put("history.features", features_);
  state.put("history.observed", observed_);
  state.put("history.doc_numbers", doc_numbers_);
  state.put_growing("history.values", values_lineage_, std::span<const float>(values_),
                    std::ssize(values_));
  std::vector<std::int32_t> ends;
  std::vector<double> sums;
  for (const PairTerm& term : terms_) {
    ends.insert(ends.end(), {term.first, term.second});
    sums.insert(sums.end(), {term.weight, term.labels});
  }
  state.put("history.term_docs", ends);
  state.put("history.term_sums", sums);
  std::vector<std::int32_t> seen;
  for (const PairObservation& one : observations_)
    seen.insert(seen.end(), {one.term, one.winner, one.loser, one.first_wins});
  std::vector<std::int32_t> sizes;
  for (const Impression& one : impressions_) sizes.insert(sizes.end(), {one.docs, one.pairs});
  state.put("history.observations", seen);
  state.put("history.impressions", sizes);
  state.put("history.impression_rows", impression_rows_);
  state.put("history.impression_clicks", impression_clicks_);
}

void DocumentHistory::load(StateReader& state) {
  if (state.get_one<std::int64_t>("history.features") != features_) {
    state.fail("The saved history belongs to data with another number of features.");
  }
  observed_ = state.get_one<std::int64_t>("history.observed");
  doc_numbers_ = state.get<std::int64_t>("history.doc_numbers");
  values_.resize(doc_numbers_.size() * static_cast<std::size_t>(features_));
  state.get_into("history.values", std::span(values_));
  values_lineage_.renew();
  const auto ends = state.get<std::int32_t>("history.term_docs");
  std::vector<double> sums(ends.size());
  state.get_into("history.term_sums", std::span(sums));
  terms_.clear();
  for (std::size_t i = 0; i + 1 < ends.size(); i += 2)
    terms_.push_back({ends[i], ends[i + 1], sums[i], sums[i + 1]});
  const auto seen = state.get<std::int32_t>("history.observations");
  observations_.clear();
  for (std::size_t i = 0; i + 3 < seen.size(); i += 4) {
    observations_.push_back({seen[i], seen[i + 1], seen[i + 2], seen[i + 3]});
  }
  const auto sizes = state.get<std::int32_t>("history.impressions");
  impression_rows_ = state.get<std::int32_t>("history.impression_rows");
  impression_clicks_ = state.get<std::uint8_t>("history.impression_clicks");
  impressions_.clear();
  Impression next;
  for (std::size_t i = 0; i + 1 < sizes.size(); i += 2) {
    next.docs = sizes[i];
    next.pairs = sizes[i + 1];
    impressions_.push_back(next);
    next.first_doc += next.docs;
    next.first_pair += next.pairs;
  }
  rebuild_indices();
  largest_doc_ = 0.0;
  note_sizes(0);
}

void DocumentHistory::rebuild_indices() {
  row_of_.clear();
  for (std::size_t row = 0; row < doc_numbers_.size(); ++row)
    row_of_.emplace(doc_numbers_[row], static_cast<std::int32_t>(row));
  term_of_.clear();
  for (std::size_t term = 0; term < terms_.size(); ++term) {
    term_of_.emplace(packed(terms_[term].first, terms_[term].second), static_cast<std::int32_t>(term));
  }
}

}  // namespace olrank
