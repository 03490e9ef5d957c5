#include "core/ops/smooth_dcg_top.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include "core/math/dcg.h"
#include "core/math/pair_loss.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

// P(document i has rank r) = ∫ w_i e^{−w_i τ} P(r − 1 others have rung by τ) dτ, for clocks that ring at
// rates w = e^{s/σ}, whose order is a Plackett–Luce list. The integral is a sum over places t with
// log τ = t − e^{−t} − log Σw, so that few places are needed where nothing has rung. From kFirstPlace on
// and with a step of at most 0.63/√k, as the k-th ring is no narrower than 1/√k in log τ, it is exact to
// 1e-12.
constexpr double kFirstPlace = -3.5;
constexpr double kMostStep = 0.25;
// Where u = w_i τ is e^kRung the document has rung but for a chance of 2e-24, and at e^kSurelyNot it has
// with one of 1e-26.
constexpr double kRung = 4.0;
constexpr double kSurelyNot = -60.0;
constexpr double kFarGap = kRung - kSurelyNot;
constexpr std::int64_t kPlaces = 8;  // side by side
using Places = double __attribute__((vector_size(kPlaces * sizeof(double))));

/// A document does this at each place.
struct AtPlaces {
  Places waits;   // e^{−u}, u = w_i τ
  Places rate;    // u e^{−u}, of its ring by log τ
  Places change;  // ∂ rate/∂ log w_i
};

/// Σ_r D(r) Σ_i G_i P(i has rank r) of the places from `first` on, and slopes[i] += its ∂/∂ log w_i.
/// `leads` are log w less that of their sum. before[i][r] and before[i][k + r] are, over the documents
/// before i: P(r have rung), and Σ_j G_j rate_j P(r others have rung). `from` is [2k]. Returns in
/// `undecided` P(fewer than k have rung) at the last place.
OLRANK_VECTOR_CLONES
double top_gains_at(const double* leads, const double* gains, std::int64_t docs, const double* discounts,
                    std::int64_t ranks, double first, double step, AtPlaces* at, Places* before,
                    Places* from, double* slopes, double* undecided) {
  double later[kPlaces];
  Places weights;
  const double pace_of_first = portable_exp(-first);
  for (std::int64_t place = 0; place < kPlaces; ++place) {
    const double on = step * static_cast<double>(place);
    const double pace = portable_exp(-(first + on));
    later[place] = portable_exp(on + (pace_of_first - pace));
    weights[place] = step * (1.0 + pace);
  }
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const double z = leads[doc] + (first - pace_of_first);
    const double u_of_first = portable_exp(z);
    double waits[kPlaces];
    double rate[kPlaces];
    double change[kPlaces];
    for (std::int64_t place = 0; place < kPlaces; ++place) {
      const double u = u_of_first * later[place];
      waits[place] = portable_exp_nonpositive(-u);
      rate[place] = u * waits[place];
      change[place] = rate[place] * (1.0 - u);
    }
    std::memcpy(&at[doc].waits, waits, sizeof waits);
    std::memcpy(&at[doc].rate, rate, sizeof rate);
    std::memcpy(&at[doc].change, change, sizeof change);
  }
  const Places zeros = {};
  std::fill_n(before, 2 * ranks, zeros);
  before[0] = zeros + 1.0;
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const Places* had = before + doc * 2 * ranks;
    Places* has = before + (doc + 1) * 2 * ranks;
    const Places waits = at[doc].waits;
    const Places rings = 1.0 - waits;
    const Places gain = gains[doc] * at[doc].rate;
    has[0] = waits * had[0];
    has[ranks] = waits * had[ranks] + gain * had[0];
    for (std::int64_t r = 1; r < ranks; ++r) {
      has[r] = waits * had[r] + rings * had[r - 1];
      has[ranks + r] = waits * had[ranks + r] + rings * had[ranks + r - 1] + gain * had[r];
    }
  }
  Places total = {};
  Places open = {};
  for (std::int64_t r = 0; r < ranks; ++r) {
    open += before[docs * 2 * ranks + r];
    total += discounts[r] * before[docs * 2 * ranks + ranks + r];
    from[r] = zeros;
    from[ranks + r] = discounts[r] * weights;
  }
  // from[·] is the derivative of the result by before[doc + 1][·].
  for (std::int64_t doc = docs - 1; doc >= 0; --doc) {
    const Places* had = before + doc * 2 * ranks;
    const Places waits = at[doc].waits;
    const Places rings = 1.0 - waits;
    const Places gain = gains[doc] * at[doc].rate;
    Places by_ring = {};
    Places by_gain = {};
    for (std::int64_t r = 0; r < ranks; ++r) {
      const Places next = r + 1 < ranks ? from[r + 1] : zeros;
      const Places next_gain = r + 1 < ranks ? from[ranks + r + 1] : zeros;
      by_ring += (next - from[r]) * had[r] + (next_gain - from[ranks + r]) * had[ranks + r];
      by_gain += from[ranks + r] * had[r];
      from[r] = waits * from[r] + rings * next + gain * from[ranks + r];
      from[ranks + r] = waits * from[ranks + r] + rings * next_gain;
    }
    const Places slope = at[doc].rate * by_ring + gains[doc] * at[doc].change * by_gain;
    for (std::int64_t place = 0; place < kPlaces; ++place) slopes[doc] += slope[place];
  }
  total *= weights;
  double sum = 0.0;
  for (std::int64_t place = 0; place < kPlaces; ++place) sum += total[place];
  *undecided = open[kPlaces - 1];
  return sum;
}

/// leads[i] = log w less that of their sum, of the documents in `order`, which descends by score. Gaps
/// between neighbours are at most kFarGap, because the order of documents so far apart is decided to 1e-27:
/// so they are finite and near each other whatever the scores and σ.
void find_leads(const double* scores, std::span<const std::int32_t> order, double sharpness, double log_sum,
                double* leads) {
  double anchor = scores[order[0]];
  double anchor_lead = -log_sum;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double score = scores[order[i]];
    if (i > 0 && (scores[order[i - 1]] - score) * sharpness > kFarGap) {
      anchor = score;
      anchor_lead = leads[i - 1] - kFarGap;
    }
    leads[i] = anchor_lead + (score - anchor) * sharpness;
  }
}

}  // namespace

// At each place only the documents from `rung` to `end` count: those before have surely rung, and those
// behind surely have not.
double smooth_dcg_top(const double* scores, const double* gains, std::int64_t docs, double most_gain,
                      double sharpness, std::int64_t ranks, Scratch& scratch, double* slopes) {
  constexpr double kDecided = 1e-17;
  const auto order = scratch.take<std::int32_t>(docs);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return comes_before(scores[a], a, scores[b], b); });
  double sum_of_weights = 0.0;
  for (const std::int32_t doc : order)
    sum_of_weights += portable_exp_nonpositive((scores[doc] - scores[order[0]]) * sharpness);
  const auto leads = scratch.take<double>(docs);
  find_leads(scores, order, sharpness, std::log(sum_of_weights), leads.data());
  const auto sorted_gains = scratch.take<double>(docs);
  for (std::int64_t i = 0; i < docs; ++i) sorted_gains[i] = gains[order[i]];
  const auto sorted_slopes = scratch.take<double>(docs);
  std::fill(sorted_slopes.begin(), sorted_slopes.end(), 0.0);
  const auto discounts = scratch.take<double>(ranks);
  double ideal = 0.0;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    ideal += most_gain * (discounts[rank] = dcg_discount(rank, Discount::kLog2));
  const auto at = scratch.take<AtPlaces>(docs);
  const auto before = scratch.take<Places>((docs + 1) * 2 * ranks);
  const auto from = scratch.take<Places>(2 * ranks);
  const double step = std::min(kMostStep, 0.63 / std::sqrt(static_cast<double>(ranks)));
  const auto log_time = [](double place) { return place - portable_exp(-place); };
  std::int64_t rung = 0;
  std::int64_t end = 0;
  double place = kFirstPlace;
  double sum = 0.0;
  double undecided = 1.0;
  while (undecided > kDecided) {
    const double next = place + static_cast<double>(kPlaces) * step;
    while (rung < docs && leads[rung] + log_time(place) > kRung) ++rung;
    while (end < docs && !(leads[end] + log_time(next) < kSurelyNot)) ++end;
    if (rung >= ranks) break;
    const std::int64_t open_ranks = std::min(ranks - rung, end - rung);
    sum += top_gains_at(leads.data() + rung, sorted_gains.data() + rung, end - rung,
                        discounts.data() + rung, open_ranks, place, step, at.data(), before.data(),
                        from.data(), sorted_slopes.data() + rung, &undecided);
    if (open_ranks < ranks - rung) undecided = 1.0;  // fewer documents than ranks
    place = next;
  }
  for (std::int64_t i = 0; i < docs; ++i) slopes[order[i]] = sorted_slopes[i] * -sharpness;
  return ideal - sum;
}

}  // namespace olrank
