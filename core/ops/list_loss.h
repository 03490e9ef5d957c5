#pragma once

#include <cstdint>
#include <span>

#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"

namespace olrank {

/// The losses of a whole list. With scores s, grades y, P_j(v) = e^{v_j}/Σ_i e^{v_i} and the gain
/// G(y) = 2^y − 1:
///   kListNet     −Σ_j P_j(y) log P_j(s). Cao et al., "Learning to rank: from pairwise approach to listwise
///                approach", ICML 2007, top-1
///   kSmoothDcg   G(Y_max) − Σ_j P_j(s/σ) G(y_j): what smoothed DCG@1 lacks. Chapelle and Wu, "Gradient
///                descent optimization of smoothed information retrieval metrics", Information Retrieval
///                2010; bounded as in Tewari and Chaudhuri, "Generalization error bounds for learning to
///                rank: does the length of document lists matter?", ICML 2015
///                With k > 1 ranks, what the expected DCG@k of Plackett–Luce lists with weights e^{s/σ}
///                lacks, which is the above for k = 1
///   kRankSvm     Σ max(0, 1 + s_j − s_i) over pairs with y_i > y_j. Joachims, KDD 2002
///   kRankNet     Σ log(1 + e^{s_j − s_i}) over the same pairs. Burges et al., ICML 2005
///   kLambdaRank  Σ |ΔNDCG_ij| log(1 + e^{s_j − s_i}) over the same pairs: ΔNDCG is what swapping the two
///                documents would change in the order by score, the whole list, and is held fixed in the
///                gradient. Burges, "From RankNet to LambdaRank to LambdaMART: an overview",
///                MSR-TR-2010-82, section 4
///   kListMle     −log of the Plackett–Luce probability that the order is one by grade, descending: the sum
///                over all orders of tied documents. Xia et al., "Listwise approach to learning to rank",
///                ICML 2008, has one order; ties as in Ma et al., "Learning-to-rank with partitioned
///                preference", AISTATS 2021
///   kRankCosine  ½(1 − ⟨y, s⟩/(‖y‖‖s‖)). Qin et al., "Query-level loss functions for information
///                retrieval", IPM 2008. 0 where y = 0; ½ with gradient 0 where only s = 0
enum class ListLoss { kListNet, kSmoothDcg, kRankSvm, kRankNet, kLambdaRank, kListMle, kRankCosine };

template <>
struct EnumNames<ListLoss> {
  static constexpr std::array values = names_in_order<ListLoss>(
      "listnet", "smooth-dcg", "ranksvm", "ranknet", "lambdarank", "listmle", "rankcosine");
};

struct ListLossForm {
  ListLoss loss = ListLoss::kListNet;
  double smoothing = 1.0;      // σ > 0 of kSmoothDcg
  std::int64_t smooth_at = 1;  // k ≥ 1 of kSmoothDcg's DCG@k
  bool pair_mean = false;      // losses of pairs: divided by the query's pairs of different grades
  int most_grade = 4;          // Y_max of kSmoothDcg, whose value is ≥ 0 for grades up to it
};

/// Whether the loss is a sum over pairs of documents of different grades.
constexpr bool has_pairs(ListLoss loss) {
  return loss == ListLoss::kRankSvm || loss == ListLoss::kRankNet || loss == ListLoss::kLambdaRank;
}

/// Whether the loss is convex in the scores.
constexpr bool is_convex(ListLoss loss) {
  return loss == ListLoss::kListNet || loss == ListLoss::kRankSvm || loss == ListLoss::kRankNet ||
         loss == ListLoss::kListMle;
}

/// The loss of one query, and slopes[i] = ∂ loss/∂ s_i. All of grades and slopes have a value per score;
/// grades are at most kHighestGrade. Without documents the loss is 0; a score that is not finite makes it
/// and all slopes NaN. Losses of pairs take O(V²), the others O(V). kSmoothDcg with k > 1 ranks takes
/// O(V log V), and O(V k) for each of about 40 places of an integral; scores far apart need more places,
/// but each document counts at no more than some 110 √k places, 270 for k < 7. kRankNet's value is exact to
/// 1e-16 per pair rather than relatively.
double list_loss(const ListLossForm& form, std::span<const double> scores,
                 std::span<const std::uint8_t> grades, Scratch& scratch, std::span<double> slopes);

/// The sum over queries, with the slopes of all documents: query q has the documents from list_ends[q − 1]
/// (0 for the first) to list_ends[q]. With weights [queries], each query's loss and slopes times its
/// weight. Same bits on any number of threads.
double list_losses(ExecutionContext& context, const ListLossForm& form, std::span<const float> scores,
                   std::span<const std::uint8_t> grades, std::span<const std::int64_t> list_ends,
                   std::span<double> slopes, std::span<const double> weights = {});

/// G ≥ sup ‖∇_s loss‖₁ for a query of `docs` documents of grades up to Y_max with `pairs` pairs of
/// different grades: the Lipschitz constant with respect to ‖s‖_∞. Infinity for kRankCosine, which has none
/// at s = 0. Approached by kListNet (2), kSmoothDcg (½ G(Y_max)/σ · Σ_{r≤k} D(r)) and kRankSvm (2 · pairs).
double slope_bound(const ListLossForm& form, std::int64_t docs, std::int64_t pairs);

/// H ≥ sup ‖∇²_s loss‖_{∞→1}: the Lipschitz constant of the gradient. Infinity for kRankSvm, whose gradient
/// jumps, and for kRankCosine; for kLambdaRank it holds as long as the order of the scores does.
double curvature_bound(const ListLossForm& form, std::int64_t docs, std::int64_t pairs);

}  // namespace olrank
