#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/online/online_ranker.h"
#include "core/random/rng_stream.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// Which examined documents form preference pairs.
enum class PairRule { kAdjacent, kMatched, kExpected, kAll };

struct PairSettings {
  PairRule pairs = PairRule::kAdjacent;
  std::vector<double> debias;  // P(examined) of the ranks from the first; empty: clicks count as they are
  std::int64_t examined_after = 1;  // l: unclicked documents behind the last click

  static const Schema& schema();
};

template <>
struct EnumNames<PairRule> {
  static constexpr std::array values = names_in_order<PairRule>("adjacent", "matched", "expected", "all");
};

/// The number of shown documents that count as examined: up to the last click and the `after` documents
/// behind it, which were not clicked; none without a click. Jia and Wang, SIGIR 2022, section 3.1, leave
/// their number open; PairRank and olRankNet have one.
std::int64_t examined_documents(std::span<const std::uint8_t> clicks, std::int64_t after = 1);

/// The preference pairs of a list's clicks. PairRule::kMatched and kExpected draw a matching from `coins`;
/// the other rules draw nothing. Pairs are in the order of ranks (kAdjacent, kAll: by winner, then loser)
/// or of the draw.
void preference_pairs(const PairSettings& settings, std::span<const std::int32_t> shown,
                      std::span<const std::uint8_t> clicks, RngStream coins,
                      std::vector<PreferencePair>& pairs);

/// The pairs of a round that enter the loss, all with one weight.
struct LossPairs {
  std::vector<PreferencePair> pairs;
  double weight = 1.0;
};

/// 1/P(examined) counts at most this: clicks at ranks that are hardly ever examined would be mostly noise.
inline constexpr double kMostDebiased = 10.0;
/// A click counts at most this, so that a round stays short.
inline constexpr double kMostCopies = 1000.0;

/// How much a click counts: its reward, or 1 without rewards, by 1/P(examined) of its rank, where `debias`
/// has these. Joachims, Swaminathan and Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM
/// 2017: clicks weighted by inverse propensities.
double click_weight(const Feedback& feedback, std::span<const double> debias, std::size_t rank);

/// Repeats each pair as often as its winner's click counts: of weight w, it stands ⌊w⌋ times, and once more
/// with probability w − ⌊w⌋, so that histories fold the copies as they fold pairs of several rounds.
/// `key` is that which the pairs were drawn with; copies have draws of their own. Where all weights are 1,
/// nothing is drawn or changed.
void repeat_pairs(const Feedback& feedback, std::span<const double> debias, PhiloxKey key,
                  std::vector<PreferencePair>& pairs);

/// `drawn` is the result of preference_pairs() with `key`. PairRule::kExpected is the mean over all
/// matchings: every clicked against every unclicked document, weighted by the probability that a matching
/// contains the pair, 1/max(clicked, unclicked). With the other rules, the loss uses the drawn pairs. All
/// of them are repeated by repeat_pairs(); clicks of little weight may leave none.
void loss_pairs(const PairSettings& settings, const Feedback& feedback, PhiloxKey key,
                std::span<const PreferencePair> drawn, LossPairs& loss);

/// Names a document across rounds by its content: the same name in the same query with the same inputs is
/// the same document. 63 of the bits of XXH3; ten million documents collide with a probability below 1e-5.
std::int64_t doc_number(std::string_view query, std::span<const float> inputs, std::string_view name = {});

/// Names a query or a document by what its owner calls it.
std::int64_t name_number(std::string_view name);

}  // namespace olrank
