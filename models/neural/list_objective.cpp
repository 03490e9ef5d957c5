#include "models/neural/list_objective.h"

#include <algorithm>
#include <tuple>

#include "models/ranker_kinds.h"

namespace olrank {

std::optional<ListLoss> list_loss_of(const RankerSettings& settings) {
  const RankerKindRow& row = row_of(settings.kind);
  if (row.training != Training::kHistory || row.weighs_by_ndcg || settings.trainer.loss != LossForm::kSum)
    return std::nullopt;
  switch (settings.trainer.loss_kind) {
    case TrainingLoss::kPairs:
      return std::nullopt;
    case TrainingLoss::kListNet:
      return ListLoss::kListNet;
    case TrainingLoss::kSmoothDcg:
      return ListLoss::kSmoothDcg;
    case TrainingLoss::kRankSvm:
      return ListLoss::kRankSvm;
    case TrainingLoss::kRankNet:
      return ListLoss::kRankNet;
    case TrainingLoss::kListMle:
      return ListLoss::kListMle;
  }
  return std::nullopt;
}

void ListObjective::gather(const PairLists& lists) {
  list_ends_.clear();
  rows_.clear();
  clicks_.clear();
  for (const ExaminedList& list : lists.lists) {
    const auto rows = lists.rows.subspan(list.first_doc, list.docs);
    const auto clicks = lists.clicks.subspan(list.first_doc, list.docs);
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    for (const std::uint8_t click : clicks) clicks_.push_back(click != 0 ? 1 : 0);
    list_ends_.push_back(std::ssize(rows_));
  }
}

double ListObjective::loss_of_scores(ExecutionContext& context, const PairLists& lists,
                                     std::span<const float> scores, std::span<double> slopes) {
  gather(lists);
  list_scores_.resize(rows_.size());
  list_slopes_.resize(rows_.size());
  for (std::size_t place = 0; place < rows_.size(); ++place) list_scores_[place] = scores[rows_[place]];
  const double loss = list_losses(context, form_, list_scores_, clicks_, list_ends_, list_slopes_);
  std::fill(slopes.begin(), slopes.end(), 0.0);
  for (std::size_t place = 0; place < rows_.size(); ++place) slopes[rows_[place]] += list_slopes_[place];
  return loss;
}

std::span<const PairTerm> ListObjective::curvature_terms(const PairLists& lists) {
  gather(lists);
  terms_.clear();
  std::int64_t begin = 0;
  for (const std::int64_t end : list_ends_) {
    const std::int64_t docs = end - begin;
    const double spread = 4.0 / static_cast<double>(docs);
    const double bound = curvature_bound(form_, docs, 0);
    const double of_all = form_.loss == ListLoss::kSmoothDcg ? spread * bound : spread * 0.5 * bound;
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = i + 1; j < end; ++j) {
        double weight = of_all;
        if (has_pairs(form_.loss)) {
          if (clicks_[i] == clicks_[j]) continue;
          weight = form_.loss == ListLoss::kRankSvm ? 4.0 : 1.0;
        }
        terms_.push_back({std::min(rows_[i], rows_[j]), std::max(rows_[i], rows_[j]), weight, 0.0});
      }
    }
    begin = end;
  }
  merge_terms();
  return terms_;
}

void ListObjective::merge_terms() {
  // Stable, so that sums have one order on every machine.
  std::stable_sort(terms_.begin(), terms_.end(), [](const PairTerm& a, const PairTerm& b) {
    return std::tie(a.first, a.second) < std::tie(b.first, b.second);
  });
  std::size_t kept = 0;
  for (const PairTerm& term : terms_) {
    if (kept > 0 && terms_[kept - 1].first == term.first && terms_[kept - 1].second == term.second) {
      terms_[kept - 1].weight += term.weight;
    } else {
      terms_[kept++] = term;
    }
  }
  terms_.resize(kept);
}

}  // namespace olrank
