#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/math/any_cpu.h"
#include "core/math/dcg.h"
#include "core/math/host_device.h"
#include "core/math/pair_loss.h"
#include "core/ops/list_loss.h"

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

/// Returns what the expected DCG@k of Plackett–Luce lists with weights e^{sharpness · s} lacks of k
/// documents with `most_gain` each, exact to 1e-12, and its slopes by the scores: list_loss() of kSmoothDcg
/// for `ranks` k. `docs` is positive; scores are finite, and `gains` and `slopes` have one number each.
/// At each place only the documents from `rung` to `end` count: those before have surely rung, and those
/// behind surely have not.
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
  find_leads(scores, order, sharpness, log_of(sum_of_weights), leads.data());
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

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kQueriesPerBlock = 16;
constexpr std::int64_t kLosersPerChunk = 512;  // a chunk's terms fit on the stack
// Factors 1 + e^x ≤ 2 of a lane's product between two logarithms, which stays below 2^1000.
constexpr std::int64_t kMostFactors = 1000;

// Four numbers side by side. Selections between wider vectors than the target has become slow code.
constexpr std::int64_t kLanes = 4;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));

constexpr std::int64_t kPadding = 8;
constexpr std::int64_t padded(std::int64_t count) {
  return (count + kPadding - 1) / kPadding * kPadding;
}

OLRANK_ALWAYS_INLINE void load(const double* from, Doubles& lanes) {
  std::memcpy(&lanes, from, sizeof lanes);
}

OLRANK_ALWAYS_INLINE double sum_of(const Doubles& v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}

/// Adds `count` numbers, a multiple of kPadding, in eight running sums.
OLRANK_ALWAYS_INLINE double lane_sum(const double* values, std::int64_t count) {
  Doubles even = {};
  Doubles odd = {};
  Doubles v;
  for (std::int64_t k = 0; k < count; k += 2 * kLanes) {
    load(values + k, v);
    even += v;
    load(values + k + kLanes, v);
    odd += v;
  }
  return sum_of(even + odd);
}

OLRANK_ALWAYS_INLINE double lane_max(const double* values, std::int64_t count) {
  Doubles most;
  load(values, most);
  Doubles v;
  for (std::int64_t k = kLanes; k < count; k += kLanes) {
    load(values + k, v);
    most = v > most ? v : most;
  }
  double result = most[0];
  for (std::int64_t lane = 1; lane < kLanes; ++lane) result = std::max(result, most[lane]);
  return result;
}

template <class Value>
OLRANK_ALWAYS_INLINE void convert_values(const Value* values, std::int64_t count, double* doubles) {
  for (std::int64_t k = 0; k < count; ++k) doubles[k] = static_cast<double>(values[k]);
}

OLRANK_VECTOR_CLONES
void convert(const float* values, std::int64_t count, double* doubles) {
  convert_values(values, count, doubles);
}

OLRANK_VECTOR_CLONES
void convert(const std::uint8_t* values, std::int64_t count, double* doubles) {
  convert_values(values, count, doubles);
}

void convert(const double* values, std::int64_t count, double* doubles) {
  std::copy_n(values, count, doubles);
}

/// The values as doubles, padded with copies of the first one to a multiple of kPadding.
template <class Value>
std::span<double> take_padded(std::span<const Value> values, Scratch& scratch) {
  const auto copy = scratch.take<double>(padded(std::ssize(values)));
  convert(values.data(), std::ssize(values), copy.data());
  std::fill(copy.begin() + std::ssize(values), copy.end(), copy[0]);
  return copy;
}

/// The scores are padded.
OLRANK_VECTOR_CLONES
bool all_finite(const double* scores, std::int64_t count) {
  const Doubles zeros = {};
  Doubles sum = {};
  Doubles v;
  for (std::int64_t k = 0; k < count; k += kLanes) {
    load(scores + k, v);
    sum += v * zeros;  // 0, or NaN
  }
  return sum_of(sum) == 0.0;
}

/// gains[k] = dcg_gain() of each grade, several at a time: 2^y has nothing but an exponent.
OLRANK_VECTOR_CLONES
void find_gains(const std::uint8_t* grades, std::int64_t count, double* gains) {
  for (std::int64_t k = 0; k < count; ++k) {
    const std::uint64_t bits = (std::uint64_t{1023} + grades[k]) << 52;
    double power = 0.0;
    std::memcpy(&power, &bits, sizeof power);
    gains[k] = power - 1.0;
  }
}

/// exps[k] = e^{scale · (v_k − max v)}, 0 in the padding; returns their sum.
OLRANK_ALWAYS_INLINE double softmax_terms(const double* v, std::int64_t count, double most, double scale,
                                          double* exps) {
  const std::int64_t whole = padded(count);
  for (std::int64_t k = 0; k < whole; ++k) exps[k] = portable_exp_nonpositive((v[k] - most) * scale);
  for (std::int64_t k = count; k < whole; ++k) exps[k] = 0.0;
  return lane_sum(exps, whole);
}

// In the following, arrays are padded to a multiple of kPadding; `target`, `terms` and the like are memory.

/// `target` holds the grades and takes e^{y − max y}.
OLRANK_VECTOR_CLONES
double list_net(const double* scores, double* target, std::int64_t docs, double* slopes) {
  const std::int64_t whole = padded(docs);
  const double most = lane_max(scores, whole);
  const double sum = softmax_terms(scores, docs, most, 1.0, slopes);
  const double target_sum = softmax_terms(target, docs, lane_max(target, whole), 1.0, target);
  const double log_sum = log_of(sum);
  const double scale = 1.0 / sum;
  const double target_scale = 1.0 / target_sum;
  Doubles losses = {};
  for (std::int64_t k = 0; k < whole; k += kLanes) {
    Doubles s;
    Doubles p;
    Doubles t;
    load(scores + k, s);
    load(slopes + k, p);
    load(target + k, t);
    t *= target_scale;
    losses += t * (log_sum - (s - most));  // both factors are ≥ 0: nothing cancels
    p = p * scale - t;
    std::memcpy(slopes + k, &p, sizeof p);
  }
  return sum_of(losses);
}

/// `gains` holds G(y); `sharpness` is 1/σ.
OLRANK_VECTOR_CLONES
double smooth_dcg(const double* scores, const double* gains, std::int64_t docs, double most_gain,
                  double sharpness, double* slopes) {
  const std::int64_t whole = padded(docs);
  const double scale = 1.0 / softmax_terms(scores, docs, lane_max(scores, whole), sharpness, slopes);
  Doubles means = {};
  for (std::int64_t k = 0; k < whole; k += kLanes) {
    Doubles p;
    Doubles gain;
    load(slopes + k, p);
    load(gains + k, gain);
    p *= scale;
    means += p * gain;
    std::memcpy(slopes + k, &p, sizeof p);
  }
  const double mean = sum_of(means);
  for (std::int64_t k = 0; k < whole; ++k)
    slopes[k] = smooth_dcg_slope(slopes[k], gains[k], mean, sharpness);
  return most_gain - mean;
}

/// The documents by descending grade, ties by index. Loops over the losers from some place on run over
/// whole lanes: behind the documents are scores of −∞, with which a winner's pair has loss and slope 0.
struct ByGrade {
  std::span<std::int32_t> doc;
  std::span<std::uint8_t> grade;
  std::span<double> score;
  std::span<double> slope;
};

std::span<double> take_zeros(std::int64_t docs, Scratch& scratch) {
  const auto values = scratch.take<double>(padded(docs) + kPadding);
  std::fill(values.begin(), values.end(), 0.0);
  return values;
}

void sort_by_grade(std::span<const std::uint8_t> grades, std::span<std::int32_t> order) {
  std::array<std::int32_t, 256> first{};  // place of the next document of each grade
  for (const std::uint8_t grade : grades) ++first[grade];
  std::int32_t place = 0;
  for (int grade = *std::max_element(grades.begin(), grades.end()); grade >= 0; --grade) {
    const std::int32_t count = first[grade];
    first[grade] = place;
    place += count;
  }
  for (std::size_t doc = 0; doc < grades.size(); ++doc) {
    order[first[grades[doc]]++] = static_cast<std::int32_t>(doc);
  }
}

/// The scores may be padded.
ByGrade take_by_grade(std::span<const double> scores, std::span<const std::uint8_t> grades,
                      Scratch& scratch) {
  const std::size_t docs = grades.size();
  ByGrade sorted{scratch.take<std::int32_t>(docs), scratch.take<std::uint8_t>(docs),
                 take_zeros(std::ssize(grades), scratch), take_zeros(std::ssize(grades), scratch)};
  sort_by_grade(grades, sorted.doc);
  for (std::size_t place = 0; place < docs; ++place) {
    sorted.score[place] = scores[sorted.doc[place]];
    sorted.grade[place] = grades[sorted.doc[place]];
  }
  std::fill(sorted.score.begin() + std::ssize(grades), sorted.score.end(), -kInfinity);
  return sorted;
}

/// The sum of of(first, end) over each grade but the lowest: the places [first, end) of its documents,
/// whose pairs are with the documents from place `end` on.
template <class Body>
double sum_over_grades(std::span<const std::uint8_t> grades, Body&& of) {
  double sum = 0.0;
  std::size_t first = 0;
  while (first < grades.size()) {
    std::size_t end = first;
    while (end < grades.size() && grades[end] == grades[first]) ++end;
    if (end == grades.size()) break;
    sum += of(static_cast<std::int64_t>(first), static_cast<std::int64_t>(end));
    first = end;
  }
  return sum;
}

/// The pairs of `kWinners` winners from a place on and the losers at places [end, docs).
template <int kWinners>
OLRANK_ALWAYS_INLINE void add_hinges(const double* scores, std::int64_t winner, std::int64_t end,
                                     std::int64_t docs, double* slopes, Doubles& losses) {
  const Doubles zeros = {};
  const Doubles ones = zeros + 1.0;
  Doubles active[kWinners] = {};
  Doubles margins[kWinners] = {};
  for (std::int64_t loser = end; loser < docs; loser += kLanes) {
    Doubles score;
    Doubles slope;
    load(scores + loser, score);
    load(slopes + loser, slope);
    for (int w = 0; w < kWinners; ++w) {
      const Doubles margin = 1.0 + (score - scores[winner + w]);
      const Doubles counts = margin > 0.0 ? ones : zeros;  // as hinge_slope()
      margins[w] += margin > 0.0 ? margin : zeros;         // as hinge_loss()
      active[w] += counts;
      slope += counts;
    }
    std::memcpy(slopes + loser, &slope, sizeof slope);
  }
  for (int w = 0; w < kWinners; ++w) {
    slopes[winner + w] -= sum_of(active[w]);
    losses += margins[w];
  }
}

/// Loss and slopes of the pairs of winners at places [first, end) and losers at places [end, docs).
OLRANK_VECTOR_CLONES
double rank_svm_pairs(const double* scores, std::int64_t first, std::int64_t end, std::int64_t docs,
                      double* slopes) {
  constexpr int kTogether = 4;  // of the winners, so that a loser's slope is loaded and stored less often
  Doubles losses = {};
  std::int64_t winner = first;
  for (; winner + kTogether <= end; winner += kTogether) {
    add_hinges<kTogether>(scores, winner, end, docs, slopes, losses);
  }
  for (; winner < end; ++winner) add_hinges<1>(scores, winner, end, docs, slopes, losses);
  return sum_of(losses);
}

/// The log of the product of all lanes, each at most 2^kMostFactors.
double log_of_lanes(const Doubles& product) {
  double sum = 0.0;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) sum += log_of(product[lane]);
  return sum;
}

/// This is as above. Σ log(1 + e^{−|x|}) is the log of a product, which costs one multiplication a pair.
OLRANK_VECTOR_CLONES
double rank_net_pairs(const double* scores, std::int64_t first, std::int64_t end, std::int64_t docs,
                      double* slopes) {
  double weights[kLosersPerChunk];
  double factors[kLosersPerChunk];
  double leads[kLosersPerChunk];
  Doubles product = {1.0, 1.0, 1.0, 1.0};
  Doubles excess = {};
  std::int64_t multiplied = 0;
  double total = 0.0;
  for (std::int64_t chunk = end; chunk < docs; chunk += kLosersPerChunk) {
    const std::int64_t whole = padded(std::min(kLosersPerChunk, docs - chunk));
    for (std::int64_t winner = first; winner < end; ++winner) {
      const double score = scores[winner];
      const double* loser = scores + chunk;
      double* slope = slopes + chunk;
      for (std::int64_t k = 0; k < whole; ++k) {
        const double lead = loser[k] - score;
        const double e = portable_exp_nonpositive(-std::fabs(lead));
        factors[k] = 1.0 + e;
        leads[k] = lead > 0.0 ? lead : 0.0;
        weights[k] = (lead < 0.0 ? e : 1.0) / (1.0 + e);  // sigmoid(lead)
      }
      multiplied += whole / kLanes;
      if (multiplied > kMostFactors) {
        total += log_of_lanes(product);
        product = Doubles{1.0, 1.0, 1.0, 1.0};
        multiplied = whole / kLanes;
      }
      Doubles sum = {};
      Doubles v;
      for (std::int64_t k = 0; k < whole; k += kLanes) {
        load(factors + k, v);
        product *= v;
        load(leads + k, v);
        excess += v;
        load(weights + k, v);
        sum += v;
        Doubles of_loser;
        load(slope + k, of_loser);
        of_loser += v;
        std::memcpy(slope + k, &of_loser, sizeof v);
      }
      slopes[winner] -= sum_of(sum);
    }
  }
  return total + log_of_lanes(product) + sum_of(excess);
}

/// It computes as above, with each pair weighted by |ΔNDCG|; `gains` and `discounts` are by place.
OLRANK_VECTOR_CLONES
double lambda_rank_pairs(const double* scores, const double* gains, const double* discounts, double ideal,
                         std::int64_t first, std::int64_t end, std::int64_t docs, double* slopes) {
  double weights[kLosersPerChunk];
  double losses[kLosersPerChunk];
  double total = 0.0;
  for (std::int64_t winner = first; winner < end; ++winner) {
    const double score = scores[winner];
    const double gain = gains[winner];
    const double discount = discounts[winner];
    double own = slopes[winner];
    for (std::int64_t chunk = end; chunk < docs; chunk += kLosersPerChunk) {
      const std::int64_t whole = padded(std::min(kLosersPerChunk, docs - chunk));
      for (std::int64_t k = 0; k < whole; ++k) {
        const double change = ndcg_change(gain - gains[chunk + k], discount, discounts[chunk + k], ideal);
        const double lead = scores[chunk + k] - score;
        losses[k] = misorder_loss(lead) * change;
        weights[k] = sigmoid(lead) * change;
      }
      for (std::int64_t k = 0; k < whole; ++k) slopes[chunk + k] += weights[k];
      // One after the other: the order that saved trials of the ranker with true grades depend on.
      for (std::int64_t k = 0; k < whole; ++k) own -= weights[k];
      total += lane_sum(losses, whole);
    }
    slopes[winner] = own;
  }
  return total;
}

double lambda_rank(const ByGrade& sorted, Scratch& scratch) {
  const auto docs = std::ssize(sorted.doc);
  const Scratch::Frame frame(scratch);
  const auto of_rank = scratch.take<double>(docs);
  for (std::int64_t rank = 0; rank < docs; ++rank) of_rank[rank] = dcg_discount(rank, Discount::kLog2);
  double ideal = 0.0;
  const auto gains = take_zeros(docs, scratch);
  find_gains(sorted.grade.data(), docs, gains.data());
  for (std::int64_t place = 0; place < docs; ++place) {
    if (sorted.grade[place] > 0) ideal += gains[place] * of_rank[place];
  }
  // Places by descending score, ties by index.
  const auto order = scratch.take<std::int32_t>(docs);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return comes_before(sorted.score[a], sorted.doc[a], sorted.score[b], sorted.doc[b]);
  });
  const auto discounts = take_zeros(docs, scratch);
  for (std::int64_t rank = 0; rank < docs; ++rank) discounts[order[rank]] = of_rank[rank];
  return sum_over_grades(sorted.grade, [&](std::int64_t first, std::int64_t end) {
    return lambda_rank_pairs(sorted.score.data(), gains.data(), discounts.data(), ideal, first, end, docs,
                             sorted.slope.data());
  });
}

/// Clocks with `leads` x_i at the time e^y, as tied_first() takes them; leaves their slopes.
OLRANK_VECTOR_CLONES
ClockSums clock_sums(const double* leads, std::int64_t count, double y, double* shares, double* slopes) {
  constexpr std::int64_t kPerLog = 128;  // factors of at least 0.018
  for (std::int64_t k = 0; k < count; ++k) {
    const double z = leads[k] + y;
    const ClockTerm term = clock_term(selected(z < kSurely, z, kSurely));
    shares[k] = term.share;
    slopes[k] = term.slope;
  }
  ClockSums sums{0.0, 0.0};
  for (std::int64_t chunk = 0; chunk < count; chunk += kPerLog) {
    double product = 1.0;
    for (std::int64_t k = chunk; k < std::min(chunk + kPerLog, count); ++k) {
      product *= shares[k];
      sums.log_product += std::min(leads[k] + y, kSurely);
      sums.slopes += slopes[k];
    }
    sums.log_product += log_of(product);
  }
  return sums;
}

/// The documents at places [first, end), which have one grade, before those from `end` on.
double list_mle_grade(const ByGrade& sorted, std::int64_t first, std::int64_t end, Scratch& scratch) {
  const auto docs = std::ssize(sorted.doc);
  const std::int64_t count = end - first;
  const Scratch::Frame frame(scratch);
  const auto others = scratch.take<double>(docs - end);
  const double most = *std::max_element(sorted.score.begin() + end, sorted.score.begin() + docs);
  double sum = 0.0;
  for (std::int64_t k = 0; k < docs - end; ++k)
    sum += others[k] = portable_exp_nonpositive(sorted.score[end + k] - most);
  const auto leads = scratch.take<double>(count);
  for (std::int64_t k = 0; k < count; ++k) leads[k] = sorted.score[first + k] - most - log_of(sum);

  double loss = 0.0;
  double pull = 0.0;
  if (count == 1) {
    loss = misorder_loss(-leads[0]);
    pull = sigmoid(-leads[0]);
    sorted.slope[first] -= pull;
  } else {
    const auto shares = scratch.take<double>(count);
    const auto slopes = scratch.take<double>(count);
    const auto weighted = scratch.take<double>(count);
    std::fill(weighted.begin(), weighted.end(), 0.0);
    const TiedFirst found = tied_first(
        count, [&](double y) { return clock_sums(leads.data(), count, y, shares.data(), slopes.data()); },
        [&](double weight) {
          for (std::int64_t k = 0; k < count; ++k) weighted[k] += weight * slopes[k];
        });
    loss = found.loss;
    for (std::int64_t k = 0; k < count; ++k) {
      pull += weighted[k] * found.scale;
      sorted.slope[first + k] -= weighted[k] * found.scale;
    }
  }
  for (std::int64_t k = 0; k < docs - end; ++k) sorted.slope[end + k] += pull * (others[k] / sum);
  return loss;
}

OLRANK_VECTOR_CLONES
double rank_cosine(const double* scores, const double* grades, std::int64_t docs, double* slopes) {
  const std::int64_t whole = padded(docs);
  Doubles products = {};
  Doubles score_squares = {};
  Doubles grade_squares = {};
  Doubles s;
  Doubles y;
  for (std::int64_t k = 0; k < whole; k += kLanes) {
    load(scores + k, s);
    load(grades + k, y);
    products += s * y;
    score_squares += s * s;
    grade_squares += y * y;
  }
  const double score_norm = std::sqrt(sum_of(score_squares));
  const double grade_norm = std::sqrt(sum_of(grade_squares));
  const bool counts = score_norm > 0.0 && grade_norm > 0.0;
  const double scale = counts ? 1.0 / (score_norm * grade_norm) : 0.0;
  const double cosine = sum_of(products) * scale;
  const double along = counts ? cosine / (score_norm * score_norm) : 0.0;
  for (std::int64_t k = 0; k < docs; ++k) slopes[k] = 0.5 * (along * scores[k] - scale * grades[k]);
  return grade_norm > 0.0 ? std::max(0.5 * (1.0 - cosine), 0.0) : 0.0;
}

double loss_by_grade(const ListLossForm& form, std::span<const double> scores,
                     std::span<const std::uint8_t> grades, Scratch& scratch, double* slopes) {
  const ByGrade sorted = take_by_grade(scores, grades, scratch);
  const auto docs = std::ssize(grades);
  const bool differ = sorted.grade.front() != sorted.grade.back();
  double loss = 0.0;
  if (form.loss == ListLoss::kLambdaRank) {
    if (differ) loss = lambda_rank(sorted, scratch);
  } else {
    loss = sum_over_grades(sorted.grade, [&](std::int64_t first, std::int64_t end) {
      if (form.loss == ListLoss::kListMle) return list_mle_grade(sorted, first, end, scratch);
      return form.loss == ListLoss::kRankSvm
                 ? rank_svm_pairs(sorted.score.data(), first, end, docs, sorted.slope.data())
                 : rank_net_pairs(sorted.score.data(), first, end, docs, sorted.slope.data());
    });
  }
  if (form.pair_mean && has_pairs(form.loss) && differ) {
    const auto pairs = static_cast<double>(graded_pairs(count_grades(grades)));
    loss /= pairs;
    for (double& slope : sorted.slope) slope /= pairs;
  }
  for (std::int64_t place = 0; place < docs; ++place) slopes[sorted.doc[place]] = sorted.slope[place];
  return loss;
}

double loss_in_order(const ListLossForm& form, std::span<double> scores,
                     std::span<const std::uint8_t> grades, Scratch& scratch, double* slopes) {
  const auto docs = std::ssize(grades);
  const auto slope = scratch.take<double>(padded(docs));
  double loss = 0.0;
  switch (form.loss) {
    case ListLoss::kSmoothDcg: {
      const auto gains = take_zeros(docs, scratch);
      find_gains(grades.data(), docs, gains.data());
      const double most_gain = dcg_gain(form.most_grade, Gain::kExponential);
      const std::int64_t ranks = std::min(form.smooth_at, docs);
      loss = ranks == 1 ? smooth_dcg(scores.data(), gains.data(), docs, most_gain, 1.0 / form.smoothing,
                                     slope.data())
                        : smooth_dcg_top(scores.data(), gains.data(), docs, most_gain, 1.0 / form.smoothing,
                                         ranks, scratch, slope.data());
      break;
    }
    case ListLoss::kRankCosine: {
      const auto y = take_padded(grades, scratch);
      std::fill(scores.begin() + docs, scores.end(), 0.0);
      std::fill(y.begin() + docs, y.end(), 0.0);
      loss = rank_cosine(scores.data(), y.data(), docs, slope.data());
      break;
    }
    default:
      loss = list_net(scores.data(), take_padded(grades, scratch).data(), docs, slope.data());
  }
  std::copy_n(slope.begin(), docs, slopes);
  return loss;
}

/// A query's scores may have any precision.
template <class Score>
double loss_of_query(const ListLossForm& form, std::span<const Score> scores,
                     std::span<const std::uint8_t> grades, Scratch& scratch, std::span<double> slopes) {
  if (scores.empty()) return 0.0;
  const Scratch::Frame frame(scratch);
  const std::span<double> precise = take_padded(scores, scratch);
  if (!all_finite(precise.data(), std::ssize(precise))) {
    std::fill(slopes.begin(), slopes.end(), kNan);
    return kNan;
  }
  return has_pairs(form.loss) || form.loss == ListLoss::kListMle
             ? loss_by_grade(form, precise, grades, scratch, slopes.data())
             : loss_in_order(form, precise, grades, scratch, slopes.data());
}

/// Bounds the sum of the pairs' weights. |ΔNDCG| is at most the first rank's discount less the last's,
/// because no gain is above the ideal DCG.
double pair_weights_bound(const ListLossForm& form, std::int64_t docs, std::int64_t pairs) {
  const double count = form.pair_mean && pairs > 0 ? 1.0 : static_cast<double>(pairs);
  return form.loss == ListLoss::kLambdaRank ? count * (1.0 - dcg_discount(docs - 1, Discount::kLog2))
                                            : count;
}

/// Σ_{r≤k} D(r), or Σ_{r≤k} r D(r).
double discount_sum(std::int64_t ranks, bool times_rank) {
  double sum = 0.0;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    sum += dcg_discount(rank, Discount::kLog2) * (times_rank ? static_cast<double>(rank + 1) : 1.0);
  return sum;
}

}  // namespace

double list_loss(const ListLossForm& form, std::span<const double> scores,
                 std::span<const std::uint8_t> grades, Scratch& scratch, std::span<double> slopes) {
  assert(grades.size() == scores.size() && slopes.size() == scores.size() && form.smoothing > 0.0);
  return loss_of_query(form, scores, grades, scratch, slopes);
}

double list_losses(ExecutionContext& context, const ListLossForm& form, std::span<const float> scores,
                   std::span<const std::uint8_t> grades, std::span<const std::int64_t> list_ends,
                   std::span<double> slopes, std::span<const double> weights) {
  assert(grades.size() == scores.size() && slopes.size() == scores.size());
  assert(weights.empty() || weights.size() == list_ends.size());
  assert(list_ends.empty() ? scores.empty() : list_ends.back() == std::ssize(scores));
  const Scratch::Frame shared_frame(context.scratch());
  const auto losses = context.scratch().take<double>(list_ends.size());
  context.for_blocks(
      std::ssize(list_ends), kQueriesPerBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
        Scratch& scratch = context.scratch(worker);
        for (std::int64_t query = begin; query < end; ++query) {
          const auto first = static_cast<std::size_t>(query == 0 ? 0 : list_ends[query - 1]);
          const std::size_t docs = static_cast<std::size_t>(list_ends[query]) - first;
          losses[query] = loss_of_query(form, scores.subspan(first, docs), grades.subspan(first, docs),
                                        scratch, slopes.subspan(first, docs));
          if (weights.empty()) continue;
          losses[query] *= weights[query];
          for (double& slope : slopes.subspan(first, docs)) slope *= weights[query];
        }
      });
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

double slope_bound(const ListLossForm& form, std::int64_t docs, std::int64_t pairs) {
  if (docs <= 1) return 0.0;
  switch (form.loss) {
    case ListLoss::kListNet:
      return 2.0;  // ‖P(s)‖₁ + ‖P(y)‖₁
    // Σ p_j |G_j − mean| is a mean deviation, at most half the range of G. For k > 1: docs/MATH.md. Lists
    // shorter than k have the bound of longer ones, so that it depends on no length.
    case ListLoss::kSmoothDcg:
      return 0.5 * dcg_gain(form.most_grade, Gain::kExponential) / form.smoothing *
             discount_sum(form.smooth_at, false);
    case ListLoss::kRankSvm:
    case ListLoss::kRankNet:
    case ListLoss::kLambdaRank:
      return 2.0 * pair_weights_bound(form, docs, pairs);
    case ListLoss::kListMle:
      return 2.0 * static_cast<double>(docs - 1);  // a mean over orders; the last place adds nothing
    case ListLoss::kRankCosine:
      break;
  }
  return kInfinity;
}

double curvature_bound(const ListLossForm& form, std::int64_t docs, std::int64_t pairs) {
  if (docs <= 1) return 0.0;
  switch (form.loss) {
    // diag(p) − p pᵀ is a covariance: its largest uᵀHv over signs is a variance of signs, at most 1.
    case ListLoss::kListNet:
      return 1.0;
    // uᵀHv = Σ a_j (u_j − ū)(v_j − v̄)/σ² with a_j = p_j(G_j − mean): Σ a_j = 0, Σ|a_j| ≤ ½G(Y_max), and the
    // products lie in an interval of length at most 4. For k > 1: docs/MATH.md.
    case ListLoss::kSmoothDcg:
      return dcg_gain(form.most_grade, Gain::kExponential) / (form.smoothing * form.smoothing) *
             discount_sum(form.smooth_at, true);
    // A pair has curvature at most ¼ along e_i − e_j, and ‖(e_i − e_j)(e_i − e_j)ᵀ‖_{∞→1} = 4.
    case ListLoss::kRankNet:
    case ListLoss::kLambdaRank:
      return pair_weights_bound(form, docs, pairs);
    case ListLoss::kListMle:
      return static_cast<double>(docs - 1);  // as kListNet, place by place; at most the mean over orders
    case ListLoss::kRankSvm:
      return pairs > 0 ? kInfinity : 0.0;
    case ListLoss::kRankCosine:
      break;
  }
  return kInfinity;
}

}  // namespace olrank
