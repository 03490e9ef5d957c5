#include "cuda/ops/list_loss.h"

#include "core/math/dcg.h"
#include "core/math/pair_loss.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/stable_groups.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

// Losses of pairs have V² terms: they share a document among the lanes of a warp, and need more warps.
constexpr unsigned kListThreads = 128;
constexpr unsigned kThreadsOfPairs = 512;

/// One query and its block. A thread owns every document whose number is its own modulo the block's size,
/// or a warp does.
struct Query {
  std::int32_t docs;
  const float* scores;
  const std::uint8_t* grades;
  double* workspace;
  double* slopes;
  double* shared;

  template <class Body>
  __device__ void for_docs(Body body) const {
    const auto step = static_cast<std::int32_t>(blockDim.x);
    for (auto doc = static_cast<std::int32_t>(threadIdx.x); doc < docs; doc += step) body(doc);
  }
  /// Calls body(doc) with a whole warp.
  template <class Body>
  __device__ void for_docs_by_warp(Body body) const {
    const auto step = static_cast<std::int32_t>(blockDim.x / 32);
    for (auto doc = static_cast<std::int32_t>(threadIdx.x / 32); doc < docs; doc += step) body(doc);
  }
  /// The documents that the calling lane takes of a warp's.
  template <class Body>
  __device__ void for_others(Body body) const {
    for (auto other = static_cast<std::int32_t>(threadIdx.x % 32); other < docs; other += 32) body(other);
  }
  __device__ static bool is_first_lane() { return threadIdx.x % 32 == 0; }
  /// Σ term(doc) over the query, for every thread.
  template <class Term>
  __device__ double sum(Term term) const {
    double own = 0.0;
    for_docs([&](std::int32_t doc) { own += term(doc); });
    return combined(own, shared, Sum{});
  }
  template <class Value>
  __device__ double most(Value value) const {
    double own = value(0);
    for_docs([&](std::int32_t doc) { own = Larger{}(own, value(doc)); });
    return combined(own, shared, Larger{});
  }
  __device__ double score(std::int32_t doc) const { return double{scores[doc]}; }
  __device__ double grade(std::int32_t doc) const { return double{1.0} * grades[doc]; }
  __device__ double gain(std::int32_t doc) const { return dcg_gain(grades[doc], Gain::kExponential); }
  /// The order is by grade, ties by index.
  __device__ bool is_before(std::int32_t doc, std::int32_t other) const {
    return grades[doc] > grades[other] || (grades[doc] == grades[other] && doc < other);
  }
};

__device__ double list_net(const Query& query) {
  const double most = query.most([&](std::int32_t doc) { return query.score(doc); });
  const double most_grade = query.most([&](std::int32_t doc) { return query.grade(doc); });
  const auto weight = [&](std::int32_t doc) { return portable_exp_nonpositive(query.score(doc) - most); };
  const auto target = [&](std::int32_t doc) {
    return portable_exp_nonpositive(query.grades[doc] - most_grade);
  };
  const double sum = query.sum(weight);
  const double target_sum = query.sum(target);
  const double log_sum = log(sum);
  query.for_docs(
      [&](std::int32_t doc) { query.slopes[doc] = weight(doc) / sum - target(doc) / target_sum; });
  return query.sum(
      [&](std::int32_t doc) { return target(doc) / target_sum * (log_sum - (query.score(doc) - most)); });
}

__device__ double smooth_dcg(const Query& query, double most_gain, double sharpness) {
  const double most = query.most([&](std::int32_t doc) { return query.score(doc); });
  const auto weight = [&](std::int32_t doc) {
    return portable_exp_nonpositive((query.score(doc) - most) * sharpness);
  };
  const double sum = query.sum(weight);
  const double mean = query.sum([&](std::int32_t doc) { return weight(doc) / sum * query.gain(doc); });
  query.for_docs([&](std::int32_t doc) {
    query.slopes[doc] = smooth_dcg_slope(weight(doc) / sum, query.gain(doc), mean, sharpness);
  });
  return most_gain - mean;
}

/// Every document meets all others: as a winner it adds the pair's loss, and as either its slope. So each
/// pair is computed twice, but no two warps add to one number. pair(winner, loser, lead) returns loss and
/// slope in `lead`.
struct PairValue {
  double loss;
  double slope;
};
template <class Pair>
__device__ double all_pairs(const Query& query, bool mean, Pair pair) {
  double loss = 0.0;
  double pairs = 0.0;
  query.for_docs_by_warp([&](std::int32_t doc) {
    double slope = 0.0;
    query.for_others([&](std::int32_t other) {
      if (query.grades[doc] == query.grades[other]) return;
      const bool wins = query.grades[doc] > query.grades[other];
      const double difference = query.score(other) - query.score(doc);
      const PairValue value = wins ? pair(doc, other, difference) : pair(other, doc, -difference);
      slope += wins ? -value.slope : value.slope;
      loss += wins ? value.loss : 0.0;
      pairs += wins ? 1.0 : 0.0;
    });
    slope = warp_sum(slope);
    if (Query::is_first_lane()) query.slopes[doc] = slope;
  });
  loss = combined(loss, query.shared, Sum{});
  if (!mean) return loss;
  pairs = combined(pairs, query.shared, Sum{});
  if (pairs == 0.0) return loss;
  query.for_docs([&](std::int32_t doc) { query.slopes[doc] /= pairs; });
  return loss / pairs;
}

__device__ double lambda_rank(const Query& query, bool mean, const double* discounts) {
  double own = 0.0;
  query.for_docs_by_warp([&](std::int32_t doc) {
    std::int32_t rank = 0;
    std::int32_t place = 0;
    query.for_others([&](std::int32_t other) {
      rank += comes_before(query.scores[other], other, query.scores[doc], doc) ? 1 : 0;
      place += query.is_before(other, doc) ? 1 : 0;
    });
    rank = warp_sum(rank);
    place = warp_sum(place);
    if (!Query::is_first_lane()) return;
    query.workspace[doc] = discounts[rank];
    own += query.gain(doc) * discounts[place];
  });
  const double ideal = combined(own, query.shared, Sum{});
  return all_pairs(query, mean, [&](std::int32_t winner, std::int32_t loser, double lead) {
    const double change = ndcg_change(query.gain(winner) - query.gain(loser), query.workspace[winner],
                                      query.workspace[loser], ideal);
    return PairValue{misorder_loss(lead) * change, sigmoid(lead) * change};
  });
}

/// −log of the probability that the documents of `grade` come before those of lower ones, with its slopes.
__device__ double list_mle_grade(const Query& query, double grade) {
  const auto is_of = [&](std::int32_t doc) { return query.grade(doc) == grade; };
  const auto is_other = [&](std::int32_t doc) { return query.grade(doc) < grade; };
  const double most =
      query.most([&](std::int32_t doc) { return is_other(doc) ? query.score(doc) : -INFINITY; });
  const auto term = [&](std::int32_t doc) {
    return is_other(doc) ? portable_exp_nonpositive(query.score(doc) - most) : 0.0;
  };
  const double sum = query.sum(term);
  const double log_sum = log(sum);
  const auto lead = [&](std::int32_t doc) { return query.score(doc) - most - log_sum; };
  const double count = query.sum([&](std::int32_t doc) { return is_of(doc) ? 1.0 : 0.0; });
  double loss = 0.0;
  query.for_docs([&](std::int32_t doc) { query.workspace[doc] = 0.0; });
  double scale = 1.0;
  if (count == 1.0) {
    loss = query.sum([&](std::int32_t doc) {
      query.workspace[doc] = is_of(doc) ? sigmoid(-lead(doc)) : 0.0;
      return is_of(doc) ? misorder_loss(-lead(doc)) : 0.0;
    });
  } else {
    double at = 0.0;
    const auto exponent = [&](std::int32_t doc) {
      return lead(doc) + at < kSurely ? lead(doc) + at : kSurely;
    };
    const auto sums_at = [&](double y) {
      at = y;
      ClockSums sums{0.0, 0.0};
      query.for_docs([&](std::int32_t doc) {
        if (!is_of(doc)) return;
        const ClockTerm clock = clock_term(exponent(doc));
        sums.log_product += exponent(doc) + log(clock.share);
        sums.slopes += clock.slope;
      });
      sums.log_product = combined(sums.log_product, query.shared, Sum{});
      sums.slopes = combined(sums.slopes, query.shared, Sum{});
      return sums;
    };
    const TiedFirst found = tied_first(static_cast<std::int64_t>(count), sums_at, [&](double weight) {
      query.for_docs([&](std::int32_t doc) {
        if (is_of(doc)) query.workspace[doc] += weight * clock_term(exponent(doc)).slope;
      });
    });
    loss = found.loss;
    scale = found.scale;
  }
  const double pull = query.sum([&](std::int32_t doc) { return query.workspace[doc] * scale; });
  query.for_docs([&](std::int32_t doc) {
    query.slopes[doc] += pull * (term(doc) / sum) - query.workspace[doc] * scale;
  });
  return loss;
}

__device__ double list_mle(const Query& query) {
  query.for_docs([&](std::int32_t doc) { query.slopes[doc] = 0.0; });
  const double lowest = -query.most([&](std::int32_t doc) { return -query.grade(doc); });
  double loss = 0.0;
  double grade = query.most([&](std::int32_t doc) { return query.grade(doc); });
  while (grade > lowest) {
    loss += list_mle_grade(query, grade);
    grade =
        query.most([&](std::int32_t doc) { return query.grade(doc) < grade ? query.grade(doc) : lowest; });
  }
  return loss;
}

__device__ double rank_cosine(const Query& query) {
  const auto grade = [&](std::int32_t doc) { return query.grade(doc); };
  const double product = query.sum([&](std::int32_t doc) { return query.score(doc) * grade(doc); });
  const double score_norm =
      sqrt(query.sum([&](std::int32_t doc) { return query.score(doc) * query.score(doc); }));
  const double grade_norm = sqrt(query.sum([&](std::int32_t doc) { return grade(doc) * grade(doc); }));
  const bool counts = score_norm > 0.0 && grade_norm > 0.0;
  const double scale = counts ? 1.0 / (score_norm * grade_norm) : 0.0;
  const double cosine = product * scale;
  const double along = counts ? cosine / (score_norm * score_norm) : 0.0;
  query.for_docs(
      [&](std::int32_t doc) { query.slopes[doc] = 0.5 * (along * query.score(doc) - scale * grade(doc)); });
  const double loss = 0.5 * (1.0 - cosine);
  return grade_norm > 0.0 && loss > 0.0 ? loss : 0.0;
}

__device__ double loss_of(const ListLossForm& form, const Query& query, const double* discounts) {
  switch (form.loss) {
    case ListLoss::kListNet:
      return list_net(query);
    case ListLoss::kSmoothDcg:
      return smooth_dcg(query, dcg_gain(form.most_grade, Gain::kExponential), 1.0 / form.smoothing);
    case ListLoss::kRankSvm:
      return all_pairs(query, form.pair_mean, [](std::int32_t, std::int32_t, double lead) {
        return PairValue{hinge_loss(lead), hinge_slope(lead)};
      });
    case ListLoss::kRankNet:
      return all_pairs(query, form.pair_mean, [](std::int32_t, std::int32_t, double lead) {
        return PairValue{misorder_loss(lead), sigmoid(lead)};
      });
    case ListLoss::kLambdaRank:
      return lambda_rank(query, form.pair_mean, discounts);
    case ListLoss::kListMle:
      return list_mle(query);
    case ListLoss::kRankCosine:
      return rank_cosine(query);
  }
  return 0.0;
}

// losses [queries], slopes [docs]. A block owns a query, its threads or warps the documents. All arithmetic
// is in double; sums go by thread, lane and warp, an order that depends on the query's size alone. Losses
// of pairs take V² terms, without sorting.
__device__ void list_losses_kernel(const Grid& grid, const ListLossForm& form, const GradedLists& lists,
                                   const float* scores, double* workspace, double* losses, double* slopes) {
  const std::int64_t number = grid.block.x;
  const std::int64_t first = number == 0 ? 0 : lists.list_ends[number - 1];
  const Query query{static_cast<std::int32_t>(lists.list_ends[number] - first),
                    scores + first,
                    lists.grades + first,
                    workspace + first,
                    slopes + first,
                    dynamic_shared<double>()};
  if (query.docs == 0) {
    if (threadIdx.x == 0) losses[number] = 0.0;
    return;
  }
  // 0, or NaN where a score is not finite.
  const double marker = query.sum([&](std::int32_t doc) { return query.score(doc) * 0.0; });
  if (!(marker == 0.0)) {
    query.for_docs([&](std::int32_t doc) { query.slopes[doc] = marker; });
    if (threadIdx.x == 0) losses[number] = marker;
    return;
  }
  double loss = loss_of(form, query, lists.discounts);
  if (lists.weights != nullptr) {
    __syncthreads();  // slopes of pairs are other threads'
    const double weight = lists.weights[number];
    loss *= weight;
    query.for_docs([&](std::int32_t doc) { query.slopes[doc] *= weight; });
  }
  if (threadIdx.x == 0) losses[number] = loss;
}

constexpr unsigned kWeightThreads = 256;
constexpr std::int64_t kWeightWarps = kWeightThreads / 32;

struct TermOfObservation {
  const PairObservation* observations;

  __device__ std::int32_t operator()(std::int64_t item) const { return observations[item].term; }
};

/// The rank by score of the document at `place` of a list of rows.
__device__ std::int32_t rank_in_list(const std::int32_t* rows, std::int32_t docs, std::int32_t place,
                                     const float* scores, const std::int64_t* doc_numbers) {
  const float own = scores[rows[place]];
  const std::int64_t number = doc_numbers[rows[place]];
  std::int32_t rank = 0;
  for (std::int32_t other = 0; other < docs; ++other) {
    if (comes_before(scores[rows[other]], doc_numbers[rows[other]], own, number)) ++rank;
  }
  return rank;
}

// changes [observations]. A warp owns an impression, its lanes the pairs; grid.block.y is the member. Lists
// are short, so each pair ranks its own two documents.
__device__ void ndcg_changes_kernel(const Grid& grid, const ImpressionView& impressions,
                                    const PairObservation* observations, std::int64_t observation_count,
                                    std::int64_t docs, const float* scores, double* changes) {
  const std::int64_t impression = std::int64_t{grid.block.x} * kWeightWarps + threadIdx.x / 32;
  if (impression >= impressions.count) return;
  const float* own_scores = scores + std::int64_t{grid.block.y} * docs;
  const std::int32_t first = impressions.first_doc[impression];
  const std::int32_t listed = impressions.first_doc[impression + 1] - first;
  const std::int32_t* rows = impressions.rows + first;
  double ideal = 0.0;
  std::int32_t clicked = 0;
  for (std::int32_t place = 0; place < listed; ++place) {
    if (impressions.clicks[first + place] != 0) ideal += kClickGain * impressions.discounts[clicked++];
  }
  const std::int32_t end = impressions.first_pair[impression + 1];
  for (std::int32_t pair = impressions.first_pair[impression] + static_cast<std::int32_t>(threadIdx.x % 32);
       pair < end; pair += 32) {
    const PairObservation& seen = observations[pair];
    const auto discount = [&](std::int32_t place) {
      return impressions.discounts[rank_in_list(rows, listed, place, own_scores, impressions.doc_numbers)];
    };
    changes[std::int64_t{grid.block.y} * observation_count + pair] =
        ndcg_change(kClickGain, discount(seen.winner), discount(seen.loser), ideal);
  }
}

// A thread owns a term of a member and adds its observations in order.
__device__ void fold_changes_kernel(const Grid& grid, const PairObservation* observations,
                                    std::int64_t observation_count, std::int64_t terms,
                                    const std::int32_t* offsets, const std::int32_t* items,
                                    const double* changes, double* weights, double* labels) {
  const std::int64_t term = std::int64_t{grid.block.x} * kWeightThreads + threadIdx.x;
  if (term >= terms) return;
  const double* own_changes = changes + std::int64_t{grid.block.y} * observation_count;
  double weight = 0.0;
  double label = 0.0;
  for (std::int32_t i = offsets[term]; i < offsets[term + 1]; ++i) {
    const double change = own_changes[items[i]];
    weight += change;
    if (observations[items[i]].first_wins != 0) label += change;
  }
  weights[std::int64_t{grid.block.y} * terms + term] = weight;
  labels[std::int64_t{grid.block.y} * terms + term] = label;
}

}  // namespace

void list_losses(Stream stream, const ListLossForm& form, const GradedLists& lists, const float* scores,
                 double* workspace, double* losses, double* slopes) {
  const auto losses_kernel = has_pairs(form.loss) ? kernel<list_losses_kernel, kThreadsOfPairs>
                                                  : kernel<list_losses_kernel, kListThreads>;
  launch(losses_kernel, {lists.queries}, losses_kernel.threads / 32 * sizeof(double), stream, form, lists,
         scores, workspace, losses, slopes);
}

void group_observations(Stream stream, const PairObservation* observations, std::int64_t count,
                        std::int64_t terms, std::int32_t* workspace, std::int32_t* offsets,
                        std::int32_t* items) {
  group_stably(stream, TermOfObservation{observations}, count, terms, workspace, offsets, items);
}

void ndcg_weights(Stream stream, const ImpressionView& impressions, const PairObservation* observations,
                  std::int64_t observation_count, std::int64_t terms, const std::int32_t* offsets,
                  const std::int32_t* items, std::int64_t members, std::int64_t docs, const float* scores,
                  double* changes, double* weights, double* labels) {
  if (members == 0 || terms == 0) return;
  launch(kernel<ndcg_changes_kernel, kWeightThreads>, {parts_of(impressions.count, kWeightWarps), members},
         0, stream, impressions, observations, observation_count, docs, scores, changes);
  launch_each(kernel<fold_changes_kernel, kWeightThreads>, terms, members, stream, observations,
              observation_count, terms, offsets, items, changes, weights, labels);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
