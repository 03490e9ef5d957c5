#include "core/ops/list_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/math/dcg.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

using Scores = std::vector<double>;
using Grades = std::vector<std::uint8_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double gain_of(int grade) {
  return std::pow(2.0, grade) - 1.0;
}

double dcg_of(const std::vector<int>& grades) {
  double sum = 0.0;
  for (std::size_t rank = 0; rank < grades.size(); ++rank) {
    sum += gain_of(grades[rank]) / std::log2(static_cast<double>(rank) + 2.0);
  }
  return sum;
}

double log_sum_exp(const Scores& v) {
  const double most = *std::max_element(v.begin(), v.end());
  double sum = 0.0;
  for (const double value : v) sum += std::exp(value - most);
  return most + std::log(sum);
}

/// log ∫ e^{−τ} Π (1 − e^{−τ e^{s − rest}}) dτ with τ = e^y, by 5,700 places of y.
double log_of_first(const Scores& of_grade, double rest) {
  constexpr double kStep = 0.01;
  Scores terms;
  for (double y = -45.0; y < 12.0; y += kStep) {
    double term = y - std::exp(y);
    for (const double score : of_grade) {
      const double z = score - rest + y;
      term += z < -40.0 ? z : std::log(-std::expm1(-std::exp(z)));
    }
    terms.push_back(term);
  }
  return log_sum_exp(terms) + std::log(kStep);
}

/// |ΔNDCG| of each (winner, loser), [docs · docs]: swaps the two documents in the list and takes the
/// difference of two whole NDCGs.
std::vector<double> slow_changes(const Scores& scores, const Grades& grades) {
  const std::size_t docs = scores.size();
  std::vector<std::size_t> order(docs);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<int> shown;
  for (const std::size_t doc : order) shown.push_back(grades[doc]);
  std::vector<int> ideal = shown;
  std::sort(ideal.rbegin(), ideal.rend());
  std::vector<double> changes(docs * docs, 0.0);
  for (std::size_t a = 0; a < docs; ++a) {
    for (std::size_t b = 0; b < docs; ++b) {
      if (grades[order[a]] <= grades[order[b]]) continue;
      std::vector<int> swapped = shown;
      std::swap(swapped[a], swapped[b]);
      changes[order[a] * docs + order[b]] = std::fabs(dcg_of(shown) - dcg_of(swapped)) / dcg_of(ideal);
    }
  }
  return changes;
}

/// The expected DCG@k of Plackett–Luce lists from `rank` on, over all orders of the documents left.
double slow_expected_dcg(const Scores& s, const Grades& y, std::int64_t k, std::int64_t rank = 0) {
  const auto docs = std::ssize(s);
  if (rank == k || docs == 0) return 0.0;
  const double most = *std::max_element(s.begin(), s.end());
  double sum = 0.0;
  for (const double score : s) sum += std::exp(score - most);
  double mean = 0.0;
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const double chance = std::exp(s[doc] - most) / sum;
    if (chance == 0.0) continue;
    double value = gain_of(y[doc]) / std::log2(static_cast<double>(rank) + 2.0);
    if (rank + 1 < k) {
      Scores rest = s;
      Grades rest_grades = y;
      rest.erase(rest.begin() + doc);
      rest_grades.erase(rest_grades.begin() + doc);
      value += slow_expected_dcg(rest, rest_grades, k, rank + 1);
    }
    mean += chance * value;
  }
  return mean;
}

/// The formulas of the header, term by term; kLambdaRank with the weights in `changes`.
double slow_loss(const ListLossForm& form, const Scores& s, const Grades& y,
                 const std::vector<double>& changes) {
  const std::size_t docs = s.size();
  if (docs == 0) return 0.0;
  double loss = 0.0;
  switch (form.loss) {
    case ListLoss::kListNet: {
      const double target_sum = log_sum_exp({y.begin(), y.end()});
      const double sum = log_sum_exp(s);
      for (std::size_t j = 0; j < docs; ++j) loss -= std::exp(y[j] - target_sum) * (s[j] - sum);
      return loss;
    }
    case ListLoss::kSmoothDcg: {
      Scores scaled;
      for (const double score : s) scaled.push_back(score / form.smoothing);
      const auto ranks = std::min<std::size_t>(form.smooth_at, docs);
      return dcg_of(std::vector<int>(ranks, form.most_grade)) -
             slow_expected_dcg(scaled, y, form.smooth_at);
    }
    case ListLoss::kListMle: {
      for (int grade = 1; grade < 256; ++grade) {
        Scores of_grade;
        Scores below;
        for (std::size_t j = 0; j < docs; ++j) {
          if (y[j] == grade) of_grade.push_back(s[j]);
          if (y[j] < grade) below.push_back(s[j]);
        }
        if (!of_grade.empty() && !below.empty()) loss -= log_of_first(of_grade, log_sum_exp(below));
      }
      return loss;
    }
    case ListLoss::kRankCosine: {
      const double product = std::inner_product(s.begin(), s.end(), y.begin(), 0.0);
      const double of_scores = std::inner_product(s.begin(), s.end(), s.begin(), 0.0);
      const double of_grades = std::inner_product(y.begin(), y.end(), y.begin(), 0.0);
      if (of_grades == 0.0) return 0.0;
      return of_scores == 0.0 ? 0.5 : 0.5 * (1.0 - product / std::sqrt(of_scores * of_grades));
    }
    default:
      break;
  }
  std::int64_t pairs = 0;
  for (std::size_t i = 0; i < docs; ++i) {
    for (std::size_t j = 0; j < docs; ++j) {
      if (y[i] <= y[j]) continue;
      ++pairs;
      const double lead = s[j] - s[i];
      const double logistic = lead > 0.0 ? lead + std::log1p(std::exp(-lead)) : std::log1p(std::exp(lead));
      loss += form.loss == ListLoss::kRankSvm   ? std::max(0.0, 1.0 + lead)
              : form.loss == ListLoss::kRankNet ? logistic
                                                : changes[i * docs + j] * logistic;
    }
  }
  return form.pair_mean && pairs > 0 ? loss / static_cast<double>(pairs) : loss;
}

double slow_loss(const ListLossForm& form, const Scores& s, const Grades& y) {
  return slow_loss(form, s, y, form.loss == ListLoss::kLambdaRank ? slow_changes(s, y) : Scores{});
}

struct Result {
  double loss;
  Scores slopes;
};

Result result_of(const ListLossForm& form, const Scores& scores, const Grades& grades) {
  Scratch scratch;
  Result result{0.0, Scores(scores.size(), 7.0)};
  result.loss = list_loss(form, scores, grades, scratch, result.slopes);
  return result;
}

double absolute_sum(const Scores& values) {
  double sum = 0.0;
  for (const double value : values) sum += std::fabs(value);
  return sum;
}

std::vector<ListLossForm> all_forms() {
  std::vector<ListLossForm> forms;
  for (const auto& [loss, name] : EnumNames<ListLoss>::values) {
    forms.push_back({.loss = loss});
    if (has_pairs(loss)) forms.push_back({.loss = loss, .pair_mean = true});
    if (loss == ListLoss::kSmoothDcg) {
      forms.push_back({.loss = loss, .smoothing = 0.25});
      forms.push_back({.loss = loss, .smooth_at = 2});
      forms.push_back({.loss = loss, .smoothing = 0.5, .smooth_at = 3});
    }
  }
  return forms;
}

/// Draws of queries.
class ListLossTest : public testing::Test {
 protected:
  Scores normal_scores(std::int64_t docs, double scale) {
    Scores scores(docs);
    for (double& score : scores) score = scale * draws_.normal();
    return scores;
  }

  /// Multiples of ½, so that many tie.
  Scores tied_scores(std::int64_t docs) {
    Scores scores(docs);
    for (double& score : scores) score = std::round(draws_.normal() * 4.0) / 2.0;
    return scores;
  }

  Grades grades(std::int64_t docs, std::uint32_t levels) {
    Grades grades(docs);
    for (std::uint8_t& grade : grades) grade = static_cast<std::uint8_t>(draws_.index(levels));
    return grades;
  }

  RngStream draws_{make_key({.seed = 4, .purpose = Purpose::kSynthetic}), 0};
};

TEST_F(ListLossTest, ValueIsTheFormula) {
  for (const ListLossForm& form : all_forms()) {
    for (const std::int64_t docs : {0, 1, 2, 3, 7, 8, 9, 17, 40, 63}) {
      for (const std::uint32_t levels : {1U, 2U, 5U}) {
        for (const char* kind : {"normal", "tied", "huge"}) {
          Scores s = *kind == 't' ? tied_scores(docs) : normal_scores(docs, 2.0);
          if (*kind == 'h')
            std::ranges::for_each(s, [](double& score) { score = score < 0.0 ? -1e4 : 1e4; });
          const Grades y = grades(docs, levels);
          const double slow = slow_loss(form, s, y);
          const Result result = result_of(form, s, y);
          // At most 63² terms near 1, each off by a few ulps.
          EXPECT_TRUE(std::fabs(result.loss - slow) <= 1e-12 * (1.0 + slow))
              << name_of(form.loss) << ", " << docs << ' ' << kind << " documents, " << levels << " grades";
          EXPECT_TRUE(absolute_sum(result.slopes) <= 2.0 * 15.0 * 1600.0) << name_of(form.loss);
        }
      }
    }
  }
}

TEST_F(ListLossTest, ListMleIsTheSumOverAllOrdersOfTiedDocuments) {
  for (const std::int64_t docs : {2, 3, 4, 6}) {
    for (const std::uint32_t levels : {2U, 3U}) {
      for (const double scale : {0.5, 2.0, 8.0}) {
        const Scores s = normal_scores(docs, scale);
        const Grades y = grades(docs, levels);
        std::vector<std::int64_t> order(docs);
        std::iota(order.begin(), order.end(), 0);
        double probability = 0.0;
        do {
          double of_order = 1.0;
          for (std::int64_t rank = 0; rank < docs; ++rank) {
            Scores rest;
            for (std::int64_t later = rank; later < docs; ++later) rest.push_back(s[order[later]]);
            of_order *= std::exp(s[order[rank]] - log_sum_exp(rest));
            if (rank > 0 && y[order[rank - 1]] < y[order[rank]]) of_order = 0.0;
          }
          probability += of_order;
        } while (std::next_permutation(order.begin(), order.end()));
        const double loss = result_of({.loss = ListLoss::kListMle}, s, y).loss;
        EXPECT_TRUE(std::fabs(loss + std::log(probability)) <= 1e-12 * (1.0 + loss))
            << docs << " documents, " << levels << " grades: " << loss;
      }
    }
  }
}

TEST_F(ListLossTest, LongListsOfPairsAreSummedInChunks) {
  for (const ListLoss loss : {ListLoss::kRankSvm, ListLoss::kRankNet, ListLoss::kListMle}) {
    for (const std::int64_t docs : {513, 1100, 2500}) {
      const Scores s = normal_scores(docs, 3.0);
      const Grades y = grades(docs, 3);
      const double slow = slow_loss({.loss = loss}, s, y);
      EXPECT_TRUE(std::fabs(result_of({.loss = loss}, s, y).loss - slow) <= 1e-12 * slow)
          << name_of(loss) << ", " << docs;
    }
  }
}

/// Whether a hinge is so close to its kink that a finite difference would cross it.
bool near_a_kink(const Scores& scores) {
  for (const double a : scores) {
    for (const double b : scores) {
      if (std::fabs(1.0 + a - b) < 1e-4) return true;
    }
  }
  return false;
}

/// Returns the central difference of `loss` by one score.
template <class Loss>
double slope_of(const Loss& loss, Scores scores, std::int64_t doc, double step) {
  const double at = scores[doc];
  scores[doc] = at + step;
  const double up = loss(scores);
  scores[doc] = at - step;
  return (up - loss(scores)) / (2.0 * step);
}

TEST_F(ListLossTest, SlopesAreFiniteDifferences) {
  for (const ListLossForm& form : all_forms()) {
    for (const std::int64_t docs : {1, 2, 3, 9, 17, 30}) {
      for (const std::uint32_t levels : {1U, 2U, 5U}) {
        Scores s = normal_scores(docs, 1.5);
        while (near_a_kink(s)) s = normal_scores(docs, 1.5);
        const Grades y = grades(docs, levels);
        const Scores changes = slow_changes(s, y);  // held fixed in the gradient
        const Scores slopes = result_of(form, s, y).slopes;
        const auto loss = [&](const Scores& moved) { return slow_loss(form, moved, y, changes); };
        for (std::int64_t doc = 0; doc < docs; ++doc)
          EXPECT_NEAR(slopes[doc], slope_of(loss, s, doc, 1e-5), 1e-6)
              << name_of(form.loss) << ", document " << doc << " of " << docs;
      }
    }
  }
}

TEST_F(ListLossTest, RankCosineHasValuesWhereItsFormulaHasNone) {
  const ListLossForm form{.loss = ListLoss::kRankCosine};
  const Result no_grade = result_of(form, {1.0, -2.0, 3.0}, {0, 0, 0});
  EXPECT_EQ(no_grade.loss, 0.0);
  EXPECT_EQ(no_grade.slopes, Scores(3, 0.0));
  const Result no_score = result_of(form, {0.0, 0.0, 0.0}, {0, 1, 2});
  EXPECT_EQ(no_score.loss, 0.5);
  EXPECT_EQ(no_score.slopes, Scores(3, 0.0));
  EXPECT_EQ(slope_bound(form, 3, 3), kInfinity);
  EXPECT_EQ(curvature_bound(form, 3, 3), kInfinity);
}

TEST_F(ListLossTest, SlopesAndTheirChangesStayWithinTheBounds) {
  struct Size {
    std::int64_t docs;
    int draws;
    int draws_of_pairs;
  };
  for (const ListLossForm& form : all_forms()) {
    EXPECT_EQ(slope_bound(form, 1, 0), 0.0);
    EXPECT_EQ(curvature_bound(form, 1, 0), 0.0);
    EXPECT_TRUE(absolute_sum(result_of(form, {2.5}, {3}).slopes) <= 1e-16) << name_of(form.loss);
    if (form.loss == ListLoss::kRankCosine) continue;
    double most_share = 0.0;
    double most_curvature_share = 0.0;
    for (const Size& size :
         {Size{2, 5000, 5000}, Size{10, 4000, 4500}, Size{100, 900, 480}, Size{1000, 100, 20}}) {
      const int draws = has_pairs(form.loss) ? size.draws_of_pairs : size.draws;
      for (int draw = 0; draw < draws; ++draw) {
        Scores s = normal_scores(size.docs, std::pow(10.0, draws_.uniform() * 4.0 - 2.0));
        const Grades y = grades(size.docs, 2 + draws_.index(4));
        const std::int64_t pairs = graded_pairs(count_grades(y));
        const Scores slopes = result_of(form, s, y).slopes;
        const double bound = slope_bound(form, size.docs, pairs);
        ASSERT_TRUE(absolute_sum(slopes) <= bound * (1.0 + 1e-12)) << name_of(form.loss) << size.docs;
        if (bound > 0.0) most_share = std::max(most_share, absolute_sum(slopes) / bound);
        const double curvature = curvature_bound(form, size.docs, pairs);
        if (curvature == kInfinity) continue;
        // H u for a vector of signs; a step of 1e-4 leaves an error of 1e-8. Ranks must not change.
        constexpr double kStep = 1e-4;
        if (form.loss == ListLoss::kLambdaRank) {
          for (double& score : s) score = std::round(score * 1e3) / 1e3;
          Scores sorted = s;
          std::sort(sorted.begin(), sorted.end());
          if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) continue;
        }
        Scores up = s;
        Scores down = s;
        for (std::int64_t doc = 0; doc < size.docs; ++doc) {
          const double step = draws_.index(2) == 0 ? kStep : -kStep;
          up[doc] += step;
          down[doc] -= step;
        }
        Scores change = result_of(form, up, y).slopes;
        const Scores before = result_of(form, down, y).slopes;
        for (std::int64_t doc = 0; doc < size.docs; ++doc) {
          change[doc] = (change[doc] - before[doc]) / (2.0 * kStep);
        }
        ASSERT_TRUE(absolute_sum(change) <= curvature * (1.0 + 1e-6) + 1e-6)
            << name_of(form.loss) << size.docs;
        if (curvature > 0.0)
          most_curvature_share = std::max(most_curvature_share, absolute_sum(change) / curvature);
      }
    }
    // The bounds are of the right order.
    EXPECT_GT(most_share, 0.4) << name_of(form.loss);
    if (form.loss != ListLoss::kRankSvm) {
      EXPECT_GT(most_curvature_share, 0.1) << name_of(form.loss);
    }
  }
}

TEST_F(ListLossTest, BoundsAreApproached) {
  // All of the target on one document, all of the model on the other.
  EXPECT_GT(absolute_sum(result_of({}, {40.0, 0.0}, {0, 31}).slopes), 2.0 - 1e-12);
  EXPECT_EQ(slope_bound({}, 2, 1), 2.0);
  for (const double smoothing : {0.1, 1.0, 3.0}) {
    const ListLossForm form{.loss = ListLoss::kSmoothDcg, .smoothing = smoothing};
    const double steepest = absolute_sum(result_of(form, {0.5, 0.5}, {4, 0}).slopes);
    EXPECT_TRUE(std::fabs(steepest - 0.5 * gain_of(4) / smoothing) <= 1e-14 * steepest);
    EXPECT_EQ(slope_bound(form, 2, 1), 0.5 * gain_of(4) / smoothing);
    // Many documents, of which half are relevant.
    const ListLossForm top{.loss = ListLoss::kSmoothDcg, .smoothing = smoothing, .smooth_at = 10};
    Grades half(2000, 0);
    std::fill_n(half.begin(), 1000, 4);
    EXPECT_GT(absolute_sum(result_of(top, Scores(2000, 0.5), half).slopes),
              0.99 * slope_bound(top, 2000, 0));
  }
  for (const std::int64_t docs : {2, 10, 100}) {
    Grades y(docs, 0);
    std::fill_n(y.begin(), docs / 2, 1);
    const ListLossForm form{.loss = ListLoss::kRankSvm};
    EXPECT_EQ(absolute_sum(result_of(form, Scores(docs, 0.0), y).slopes),
              static_cast<double>(docs * docs) / 2.0);
    EXPECT_EQ(slope_bound(form, docs, graded_pairs(count_grades(y))),
              static_cast<double>(docs * docs) / 2.0);
    EXPECT_EQ(
        slope_bound({.loss = ListLoss::kRankSvm, .pair_mean = true}, docs, graded_pairs(count_grades(y))),
        2.0);
  }
  // ListNet's Hessian is diag(p) − p pᵀ: p = (½, ½) with signs (1, −1).
  const Scores up = result_of({}, {1e-4, -1e-4}, {1, 1}).slopes;
  EXPECT_TRUE(std::fabs(absolute_sum(up) / 1e-4 - curvature_bound({}, 2, 0)) <= 1e-7);
}

TEST_F(ListLossTest, SmoothDcgOfManyRanksEndsForAnyGapOfScores) {
  // Pairs of equal scores, gap by gap: only the order within a pair is open.
  const Grades y = {4, 1, 0, 3, 2, 4, 1, 0};
  const auto scores = [](double gap) { return Scores{gap, gap, gap / 2, gap / 2, 0.0, 0.0, -gap, -gap}; };
  const ListLossForm form{.loss = ListLoss::kSmoothDcg, .smooth_at = 5};
  const Result near = result_of(form, scores(200.0), y);
  double dcg = 0.0;
  for (const int rank : {0, 1, 2, 3, 4}) {
    const int first = rank / 2 * 2;
    dcg += (gain_of(y[first]) + gain_of(y[first + 1])) / 2.0 / std::log2(rank + 2.0);
  }
  EXPECT_TRUE(std::fabs(near.loss - (dcg_of({4, 4, 4, 4, 4}) - dcg)) <= 1e-11);
  for (const double gap : {126.0, 130.0, 1e3, 2e17, 2e30, 1.5e308}) {  // −1.5e308 − 1.5e308 overflows
    const Result far = result_of(form, scores(gap), y);
    EXPECT_TRUE(std::fabs(far.loss - near.loss) <= 1e-12) << gap << ": " << far.loss - near.loss;
    for (std::size_t doc = 0; doc < y.size(); ++doc)
      EXPECT_TRUE(std::fabs(far.slopes[doc] - near.slopes[doc]) <= 1e-12) << gap << ", " << doc;
  }
  // A small σ makes the same gaps.
  for (const double smoothing : {1e-20, 1e-300}) {
    const ListLossForm sharp{.loss = ListLoss::kSmoothDcg, .smoothing = smoothing, .smooth_at = 5};
    EXPECT_TRUE(std::fabs(result_of(sharp, scores(1e10), y).loss - near.loss) <= 1e-12) << smoothing;
  }
}

TEST_F(ListLossTest, SmoothDcgOfManyRanksCountsFarScoresInTheirOrder) {
  // 400 documents 43 σ apart: the list is the order by score.
  constexpr int kRanks = 100;
  const Grades y = grades(400, 5);
  Scores s;
  for (std::size_t doc = 0; doc < y.size(); ++doc) s.push_back(-43.0 * static_cast<double>(doc));
  const Result result = result_of({.loss = ListLoss::kSmoothDcg, .smooth_at = kRanks}, s, y);
  const double lacks = dcg_of(std::vector<int>(kRanks, 4)) - dcg_of({y.begin(), y.begin() + kRanks});
  EXPECT_TRUE(std::fabs(result.loss - lacks) <= 1e-10) << result.loss - lacks;
  EXPECT_TRUE(absolute_sum(result.slopes) <= 1e-10);
}

TEST_F(ListLossTest, SlopesOfSmoothDcgAtTenRanksAreFiniteDifferences) {
  for (const std::int64_t docs : {5, 10, 11, 60}) {
    for (const double spread : {0.0, 1.0, 30.0, 3000.0}) {
      const ListLossForm form{.loss = ListLoss::kSmoothDcg, .smooth_at = 10};
      Scores s = tied_scores(docs);
      for (double& score : s) score *= spread;
      const Grades y = grades(docs, 5);
      const Scores slopes = result_of(form, s, y).slopes;
      const auto loss = [&](const Scores& moved) { return result_of(form, moved, y).loss; };
      for (std::int64_t doc = 0; doc < docs; ++doc)
        EXPECT_NEAR(slopes[doc], slope_of(loss, s, doc, 1e-4), 1e-7) << docs << ", " << spread;
      EXPECT_NEAR(std::accumulate(slopes.begin(), slopes.end(), 0.0), 0.0, 1e-9) << docs << ", " << spread;
    }
  }
}

TEST_F(ListLossTest, SmoothDcgOfManyRanksHasItsKnownValues) {
  // Values known in advance where all scores are equal: every document has every rank alike.
  for (const std::int64_t docs : {2, 10, 200}) {
    const Grades y = grades(docs, 5);
    double mean = 0.0;
    for (const std::uint8_t grade : y) mean += gain_of(grade) / static_cast<double>(docs);
    for (const std::int64_t k : {10, 50}) {
      const double most = dcg_of(std::vector<int>(std::min(k, docs), 1));
      const Result result =
          result_of({.loss = ListLoss::kSmoothDcg, .smooth_at = k}, Scores(docs, -3.5), y);
      EXPECT_TRUE(std::fabs(result.loss - (gain_of(4) - mean) * most) <= 1e-11 * most)
          << docs << " at " << k;
    }
  }
  // Lists that are no longer than k have all orders; far scores have one.
  const Result whole =
      result_of({.loss = ListLoss::kSmoothDcg, .smooth_at = 9}, {300.0, -500.0, 0.0, 1e5}, {1, 4, 0, 2});
  EXPECT_TRUE(std::fabs(whole.loss - (dcg_of({4, 4, 4, 4}) - dcg_of({2, 1, 0, 4}))) <= 1e-11);
  EXPECT_TRUE(absolute_sum(whole.slopes) <= 1e-11);
}

TEST_F(ListLossTest, ScoresThatAreNotFiniteGiveNoNumber) {
  for (const ListLossForm& form : all_forms()) {
    for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
      const Result result = result_of(form, {1.0, bad, 2.0}, {0, 1, 2});
      EXPECT_TRUE(std::isnan(result.loss)) << name_of(form.loss);
      for (const double slope : result.slopes) EXPECT_TRUE(std::isnan(slope)) << name_of(form.loss);
    }
  }
}

TEST_F(ListLossTest, RaggedQueriesAreTheirSumWithTheSameBitsOnAnyThreads) {
  std::vector<std::int64_t> ends;
  std::vector<float> scores;
  Grades all_grades;
  for (int query = 0; query < 150; ++query) {
    const std::int64_t docs = query % 7 == 0 ? query % 3 : 1 + draws_.index(60);
    for (const double score : normal_scores(docs, 2.0)) scores.push_back(static_cast<float>(score));
    for (const std::uint8_t grade : grades(docs, 1 + query % 5)) all_grades.push_back(grade);
    ends.push_back(std::ssize(scores));
  }
  for (const ListLossForm& form : all_forms()) {
    double total = 0.0;
    Scores slopes;
    for (std::size_t query = 0; query < ends.size(); ++query) {
      const std::int64_t first = query == 0 ? 0 : ends[query - 1];
      const Result one = result_of(form, {scores.begin() + first, scores.begin() + ends[query]},
                                   {all_grades.begin() + first, all_grades.begin() + ends[query]});
      total += one.loss;
      slopes.insert(slopes.end(), one.slopes.begin(), one.slopes.end());
    }
    for (const int threads : {1, 2, 4}) {
      ExecutionContext context(threads);
      Scores ragged(scores.size(), 7.0);
      EXPECT_EQ(list_losses(context, form, scores, all_grades, ends, ragged), total) << name_of(form.loss);
      EXPECT_EQ(ragged, slopes) << name_of(form.loss) << " on " << threads << " threads";
    }
  }
  ExecutionContext context;
  EXPECT_EQ(list_losses(context, {}, {}, {}, {}, {}), 0.0);
}

TEST_F(ListLossTest, OnlyTheConvexOnesAreCalledSo) {
  for (const auto& [loss, name] : EnumNames<ListLoss>::values) {
    // The value at the middle of two points is at most the mean of the values.
    bool convex = true;
    for (int draw = 0; draw < 2000; ++draw) {
      const ListLossForm form{.loss = loss};
      const Grades y = grades(4, 5);
      const Scores a = normal_scores(4, 3.0);
      const Scores b = normal_scores(4, 3.0);
      Scores middle(4);
      for (int doc = 0; doc < 4; ++doc) middle[doc] = 0.5 * (a[doc] + b[doc]);
      const double mean = 0.5 * (result_of(form, a, y).loss + result_of(form, b, y).loss);
      convex &= result_of(form, middle, y).loss <= mean * (1.0 + 1e-12) + 1e-12;
    }
    EXPECT_EQ(is_convex(loss), convex) << name;
  }
}

}  // namespace
}  // namespace olrank
