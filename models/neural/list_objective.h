#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ops/list_loss.h"
#include "models/neural/pair_lists.h"
#include "models/ranker_settings.h"

namespace olrank {

/// The loss of whole lists that a ranker's training descends on; nothing for the cross-entropy of pairs,
/// and where `loss_kind` does not count.
std::optional<ListLoss> list_loss_of(const RankerSettings& settings);

/// Σ over the examined lists of a history of a list's loss, clicks being the grades. A document of several
/// lists has the sum of their slopes.
class ListObjective {
 public:
  explicit ListObjective(ListLoss loss) : form_{.loss = loss, .most_grade = 1} {}

  /// The loss at the documents' scores, and its derivative with respect to each of them.
  double loss_of_scores(ExecutionContext& context, const PairLists& lists, std::span<const float> scores,
                        std::span<double> slopes);

  /// Terms whose curvature ¼ Σ weight · (∇f_first − ∇f_second)(∇f_first − ∇f_second)ᵀ is at least that of
  /// the loss, whatever the scores: for all pairs of a list of m documents, weight 4c/m, where c bounds the
  /// largest eigenvalue of its Hessian in s, since shifts of s change nothing and
  /// I − 11ᵀ/m = 1/m · Σ (e_i − e_j)(e_i − e_j)ᵀ. c is ½ for a softmax (kListNet; kListMle has m − 1 of
  /// them) and curvature_bound() for kSmoothDcg. Losses of pairs have their own pairs: with weight 1 for
  /// kRankNet, and 4 for kRankSvm, the curvature of a hinge that is rounded over a unit of its margin; it
  /// has none of its own, so that steps which are too long show as a rising loss.
  std::span<const PairTerm> curvature_terms(const PairLists& lists);

 private:
  void gather(const PairLists& lists);
  void merge_terms();

  ListLossForm form_;
  std::vector<std::int64_t> list_ends_;
  std::vector<std::int32_t> rows_;  // of the lists' documents
  std::vector<std::uint8_t> clicks_;
  std::vector<float> list_scores_;
  std::vector<double> list_slopes_;
  std::vector<PairTerm> terms_;
};

}  // namespace olrank
