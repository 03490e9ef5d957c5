#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/clicks/reading_model.h"
#include "core/interface.h"

namespace olrank {

/// How likely each document is clicked where it is examined. The E step counts what is expected of
/// examined documents, the M step changes the probabilities.
class Attraction : public Interface {
 public:
  double of(std::int32_t doc) const { return coins_[doc].probability; }
  /// `no`: how likely it was examined without a click.
  void count(std::int32_t doc, double yes, double no) { coins_[doc].count(yes, no); }

  virtual void maximise() = 0;
  /// ln of the prior's density, but for a constant.
  virtual double log_prior() const = 0;

 protected:
  Attraction(std::int64_t docs, double probability) : coins_(docs, Coin{.probability = probability}) {}

  std::vector<Coin> coins_;
};

/// Whether a document's attraction follows from its inputs.
inline bool goes_by_inputs(FittedModel model) {
  return model == FittedModel::kTwoTower || model == FittedModel::kTrust;
}
/// Whether a model learns how often each rank is examined, from documents that were shown at several ranks.
inline bool learns_looks(FittedModel model) {
  return model == FittedModel::kPosition || model == FittedModel::kUserBrowsing || goes_by_inputs(model);
}

/// A click model that was fitted by expectation maximisation (Chuklin, Markov and de Rijke, "Click models
/// for web search", 2015, chapter 4).
struct FittedClicks {
  FittedModel model = FittedModel::kRankOnly;
  std::unique_ptr<ReadingModel> reading;
  std::unique_ptr<Attraction> attraction;
  /// ln P(clicks of the lists) + ln prior before each M step; it never falls. The cascade counts clicks
  /// up to the first of a list.
  std::vector<double> objectives;
  bool converged = false;
};

struct ClickFitSettings {
  std::int64_t iterations = 100;
  double tolerance = 1e-6;  // it has converged when a step gains less than this for each shown document
};

/// `ranks` is the longest list that the model will ever see. `docs` outlives the fit. The same lists give
/// the same bits: everything is summed in their order.
FittedClicks fit_clicks(FittedModel model, const ClickLists& lists, const ClickDocs& docs,
                        std::int64_t ranks, const ClickFitSettings& settings);

/// How well a model predicts lists.
struct ClickFigures {
  std::vector<double> perplexity_by_rank;  // 2^(−mean log₂ P(what happened at the rank)); 1 is perfect
  double perplexity = 0.0;                 // the same over all shown documents
  double log_likelihood = 0.0;             // ln P(clicks of a list), mean over lists
  std::vector<double> examination;         // mean of P(examined) over the lists that have the rank
};

/// Probabilities count as at least 1e-6, so that a click that a model excludes is not infinitely wrong.
/// Perplexities are of P(click at a rank), whatever is above; the likelihood is of the whole list.
ClickFigures judge_clicks(const FittedClicks& fit, const ClickLists& lists);

/// Which ranks documents link by being shown at both. Without links, examination of a rank and attraction
/// of its documents cannot be told apart (Hager, Zoeter and de Rijke, "Unidentified and confounded?
/// Understanding two-tower models for unbiased learning to rank", arXiv 2506.20501).
struct RankLinks {
  std::int64_t docs = 0;              // that were shown
  std::int64_t moved = 0;             // at two ranks or more
  std::vector<std::int64_t> by_rank;  // [ranks] moved documents that were shown there, too
  /// Ranks (from 0) that hang together through moved documents; both levels in ascending order.
  std::vector<std::vector<std::int64_t>> groups;
};

RankLinks find_rank_links(const ClickLists& lists, std::int64_t docs);

}  // namespace olrank
