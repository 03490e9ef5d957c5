#include "models/baselines/baselines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/fair/exposure.h"
#include "core/throw_error.h"
#include "models/linear/linear_belief.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/certain_order_ranker.h"

namespace olrank {
namespace {

bool has_bit(std::span<const std::uint64_t> bits, std::int64_t place) {
  return (bits[place / OrderBits::kWordBits] >> place % OrderBits::kWordBits & 1U) != 0;
}

/// TopRank: Lattimore, Kveton, Li and Szepesvári, "TopRank: a practical algorithm for online stochastic
/// ranking", NeurIPS 2018, Algorithm 1. For each query it keeps which documents are certainly worse than
/// others, from clicks alone: it splits the documents into blocks of those that no other of the rest beats,
/// shows each block in random order, and adds "j is worse than i" once the clicks of documents in a common
/// block differ by more than chance, S_ij ≥ √(2 N_ij log(c √N_ij / δ)). Features play no part, so it knows
/// nothing about queries that it was never asked: its scores are 0.
class TopRank : public OnlineRanker {
 public:
  TopRank(const RankerSettings& settings, std::int64_t features, const TrialKeys& keys, std::int64_t cutoff)
      : settings_(settings),
        model_(std::make_unique<LinearModel>(features)),
        list_(settings.explore, settings.fair, keys, cutoff) {}

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    const auto measured = context.clock.measure("rank");
    const Known& known = known_of(query);
    ranked_ = &known;
    orders_of(known, list_.orders());
    if (query.fair == nullptr || settings_.fair.fair != Fairness::kFairCo)
      return list_.make_of_blocks(known.by_block, known.ends, round, query.fair);
    control(known, *query.fair);
    return list_.make_controlled_blocks(known.by_block, controlled_docs_, controlled_ends_, round);
  }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    const auto measured = context.clock.measure("train");
    Known& known = known_of(feedback.query);
    clicked_.assign(known.docs, 0);
    for (std::size_t rank = 0; rank < feedback.shown.size(); ++rank)
      clicked_[feedback.shown[rank]] = feedback.clicks[rank];
    bool changed = false;
    for (std::int64_t winner = 0; winner < known.docs; ++winner) {
      if (clicked_[winner] == 0) continue;
      // Documents that were not shown got no click either.
      for (std::int64_t loser = 0; loser < known.docs; ++loser) {
        if (clicked_[loser] == 0 && known.block_of[loser] == known.block_of[winner])
          changed = count(known, winner, loser) || changed;
      }
    }
    if (changed) partition(known);
    return {};
  }
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override {
    detail = {};
    for (std::int64_t doc = 0; doc < query.docs(); ++doc)
      detail.scores.push_back(-static_cast<double>(ranked_->block_of[doc]));
    if (full) list_.write_matrix(ranked_->by_block, detail.certain);
  }
  void score(ExecutionContext& /*context*/, FeatureMatrix /*docs*/,
             std::span<float> scores) const override {
    std::fill(scores.begin(), scores.end(), 0.0F);
  }
  std::int64_t parameters() const override { return model_->parameters(); }
  ModelTensors model() const override { return model_->tensors(std::vector<float>(model_->parameters())); }
  std::vector<RankerFigure> figures(ExecutionContext& /*context*/) const override { return {}; }
  bool learns_from_unshown() const override { return true; }
  void fields(StateFields& state) override {
    std::vector<std::int64_t> queries;
    std::vector<std::int64_t> docs;
    std::vector<std::int32_t> lead;
    std::vector<std::int32_t> count;
    std::vector<std::uint64_t> better;
    if (!state.reads()) {
      for (const auto& [query, known] : known_) {
        queries.push_back(query);
        docs.push_back(known.docs);
        lead.insert(lead.end(), known.lead.begin(), known.lead.end());
        count.insert(count.end(), known.count.begin(), known.count.end());
        better.insert(better.end(), known.better.begin(), known.better.end());
      }
    }
    state.any("toprank.queries", queries);
    state.any("toprank.docs", docs);
    state.any("toprank.lead", lead);
    state.any("toprank.count", count);
    state.any("toprank.better", better);
    if (!state.reads()) return;
    known_.clear();
    ranked_ = nullptr;
    std::size_t pairs = 0;
    std::size_t words = 0;
    const auto fail = [] {
      throw IoError("The checkpoint's counts of toprank do not fit its queries: play the trial again.");
    };
    if (docs.size() != queries.size() || count.size() != lead.size()) fail();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      constexpr std::int64_t kMostDocs = 1'000'000;
      if (docs[i] < 0 || docs[i] > kMostDocs) fail();
      const auto of_pairs = static_cast<std::size_t>(docs[i] * (docs[i] - 1) / 2);
      const auto of_words = static_cast<std::size_t>(docs[i] * OrderBits::words(docs[i]));
      if (of_pairs > lead.size() - pairs || of_words > better.size() - words) fail();
      Known& known = known_[queries[i]];
      known.docs = docs[i];
      known.lead.assign(lead.begin() + pairs, lead.begin() + pairs + of_pairs);
      known.count.assign(count.begin() + pairs, count.begin() + pairs + of_pairs);
      known.better.assign(better.begin() + words, better.begin() + words + of_words);
      pairs += of_pairs;
      words += of_words;
      partition(known);
    }
  }

 private:
  /// It holds what is known about a query.
  struct Known {
    std::int64_t docs = 0;
    std::vector<std::int32_t> lead;      // S_ij of i < j, row by row
    std::vector<std::int32_t> count;     // N_ij, likewise
    std::vector<std::uint64_t> better;   // bit (i, j): j is worse than i; [docs × words]
    std::vector<std::int32_t> by_block;  // docs
    std::vector<std::int32_t> block_of;  // by document
    std::vector<std::int32_t> ends;      // of blocks
  };

  Known& known_of(const QueryDocs& query) {
    const auto [found, is_new] = known_.try_emplace(query.query);
    Known& known = found->second;
    if (is_new) {
      known.docs = query.docs();
      known.lead.assign(known.docs * (known.docs - 1) / 2, 0);
      known.count = known.lead;
      known.better.assign(known.docs * OrderBits::words(known.docs), 0);
      partition(known);
    }
    if (known.docs != query.docs()) {
      throw_error<InvalidArgument>(
          "Ranker '{}' knows query {} with {} documents, and {} are given: keep the documents of a query "
          "the same.",
          settings_.name, query.query, known.docs, query.docs());
    }
    return known;
  }
  static std::size_t pair_of(const Known& known, std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(i * known.docs - i * (i + 1) / 2 + j - i - 1);
  }
  /// Counts a click on `winner` that `loser` did not get; true if that makes an order certain.
  bool count(Known& known, std::int64_t winner, std::int64_t loser) const {
    const bool in_order = winner < loser;
    const std::size_t pair = in_order ? pair_of(known, winner, loser) : pair_of(known, loser, winner);
    known.lead[pair] += in_order ? 1 : -1;
    ++known.count[pair];
    const std::int64_t lead = in_order ? known.lead[pair] : -known.lead[pair];
    if (static_cast<double>(lead) < toprank_threshold(known.count[pair], settings_.explore.delta))
      return false;
    known.better[winner * OrderBits::words(known.docs) + loser / OrderBits::kWordBits] |=
        std::uint64_t{1} << loser % OrderBits::kWordBits;
    return true;
  }
  static void partition(Known& known) {
    const std::int64_t words = OrderBits::words(known.docs);
    std::vector<std::int32_t> rest(known.docs);
    std::iota(rest.begin(), rest.end(), 0);
    std::vector<std::uint64_t> beaten(words);
    known.by_block.clear();
    known.ends.clear();
    known.block_of.resize(known.docs);
    while (!rest.empty()) {
      std::fill(beaten.begin(), beaten.end(), 0);
      for (const std::int32_t doc : rest) {
        for (std::int64_t word = 0; word < words; ++word) beaten[word] |= known.better[doc * words + word];
      }
      const auto begin = std::stable_partition(rest.begin(), rest.end(),
                                               [&](std::int32_t doc) { return has_bit(beaten, doc); });
      // Orders that contradict each other, which has probability δ, leave one last block.
      const auto first = begin == rest.end() ? rest.begin() : begin;
      for (auto doc = first; doc != rest.end(); ++doc)
        known.block_of[*doc] = static_cast<std::int32_t>(known.ends.size());
      known.by_block.insert(known.by_block.end(), first, rest.end());
      known.ends.push_back(static_cast<std::int32_t>(known.by_block.size()));
      rest.erase(first, rest.end());
    }
  }
  /// The orders by place, closed transitively.
  static void orders_of(const Known& known, OrderBits& orders) {
    const std::int64_t words = OrderBits::words(known.docs);
    orders.reset(known.docs);
    for (std::int64_t a = 0; a < known.docs; ++a) {
      const auto row = std::span(known.better).subspan(known.by_block[a] * words, words);
      for (std::int64_t b = a + 1; b < known.docs; ++b) {
        if (has_bit(row, known.by_block[b])) orders.set(a, b);
      }
    }
    close_transitively(orders);
  }
  /// Blocks by controlled scores: −number of the block, raised by `fair`.
  void control(const Known& known, const FairRound& fair) {
    controlled_scores_.resize(known.docs);
    for (std::int64_t doc = 0; doc < known.docs; ++doc) {
      controlled_scores_[doc] = fair_control(fair, settings_.fair.fair_gain, fair.groups[doc]) -
                                static_cast<double>(known.block_of[doc]);
    }
    controlled_docs_ = known.by_block;
    std::stable_sort(controlled_docs_.begin(), controlled_docs_.end(), [&](std::int32_t a, std::int32_t b) {
      return controlled_scores_[a] > controlled_scores_[b];
    });
    controlled_ends_.clear();
    for (std::int32_t end = 1; end <= known.docs; ++end) {
      if (end < known.docs &&
          controlled_scores_[controlled_docs_[end]] == controlled_scores_[controlled_docs_[end - 1]])
        continue;
      controlled_ends_.push_back(end);
    }
  }

  RankerSettings settings_;
  std::unique_ptr<ScoreModel> model_;  // with no weight but 0
  CertainList list_;

  std::map<std::int64_t, Known> known_;  // by query

  const Known* ranked_ = nullptr;  // the latest
  std::vector<std::uint8_t> clicked_;
  std::vector<double> controlled_scores_;
  std::vector<std::int32_t> controlled_docs_;
  std::vector<std::int32_t> controlled_ends_;
};

}  // namespace

double toprank_threshold(std::int64_t count, double delta) {
  // 3.344: the paper prints 3.43 beside the formula.
  static const double c = 4.0 * std::sqrt(2.0 / std::numbers::pi) / std::erf(std::numbers::sqrt2);
  const auto n = static_cast<double>(count);
  return std::sqrt(2.0 * n * std::log(c * std::sqrt(n) / delta));
}

std::unique_ptr<OnlineRanker> make_toprank(const RankerRequest& request) {
  return std::make_unique<TopRank>(request.settings, request.features, request.keys, request.cutoff);
}

void set_toprank_defaults(RankerSettings& settings, const DefaultsContext& /*context*/) {
  // 1/T of the 5,000 rounds of the fairness study.
  settings.explore.delta = 0.0002;
}

}  // namespace olrank
