#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/settings/enum_names.h"
#include "core/statistics/intervals.h"

namespace olrank {

/// A list that one policy has shown and another one might have: what the off-policy value of the other is
/// made of. Probabilities are those of each rank's document.
struct ComparedList {
  std::uint64_t cluster = 0;        // lists of one cluster are redrawn together: those of a query
  std::span<const double> rewards;  // of each rank
  /// Given the documents above, by the policy that showed the list; empty: not known, and no estimate by
  /// weights is made.
  std::span<const double> logged;
  std::span<const double> target;  // the same by the other policy
  /// By a model of clicks; empty: there is none, and no estimate by a model is made.
  std::span<const double> expected = {};  // reward of each rank of this list, whatever is clicked above
  double direct = 0.0;                    // reward of a list of the other policy
  double by_exposure = 0.0;               // the same by what its documents have got where they were seen
};

/// Importance weighting of lists and of prefixes, each also divided by the mean weight (Kiyohara et al.,
/// "Doubly robust off-policy evaluation for ranking policies under the cascade behavior model", WSDM 2022;
/// Swaminathan and Joachims, "The self-normalized estimator for counterfactual learning", NeurIPS 2015).
/// Whole lists assume nothing about users. Prefixes assume that what is below does not matter to a click.
///
/// Three go by a model of clicks: what it says of the other policy's lists; the same corrected by prefix
/// weights for what the model gets wrong (Kiyohara et al.: with a model in which nothing below matters, the
/// sum over ranks telescopes to direct + Σ_r w_r (reward_r − expected_r)), which stays right where the
/// model is wrong; and rewards per exposure of each document over all policies that have shown it, which
/// needs no chance in the lists where policies changed (Oosterhuis and de Rijke, "Unifying online and
/// counterfactual learning to rank", WSDM 2021).
enum class SlateEstimator {
  kIps,
  kRips,
  kSelfIps,
  kSelfRips,
  kDirect,
  kCascadeDoublyRobust,
  kInterventionAware
};

inline bool goes_by_model(SlateEstimator estimator) {
  return estimator >= SlateEstimator::kDirect;
}

/// Not direct and intervention-aware, which the click model alone decides.
inline bool rests_on_weights(SlateEstimator estimator) {
  return !goes_by_model(estimator) || estimator == SlateEstimator::kCascadeDoublyRobust;
}

template <>
struct EnumNames<SlateEstimator> {
  static constexpr std::array values = names_in_order<SlateEstimator>(
      "ips", "rips", "snips", "snrips", "direct", "cascade-dr", "intervention-aware");
};

struct SlateEstimate {
  SlateEstimator estimator = SlateEstimator::kIps;
  Interval value;       // reward a list
  Interval difference;  // to that of the lists as they were shown
};

/// The support is what the weights of prefixes up to a rank, or of whole lists, rest on.
struct SlateSupport {
  double mean_weight = 0.0;  // 1 where the log covers all that the other policy may show
  double largest_weight = 0.0;
  double effective_lists = 0.0;  // (Σw)²/Σw²
  double without_weight = 0.0;   // share of lists that the other policy would never show so far
};

/// Sums over a stream of lists, in memory that does not grow with it: clusters share kGroups groups by
/// their hash. Intervals come from a bootstrap over groups: each replicate takes every group as often as a
/// Poisson variable of mean 1 says, which is drawn by (group, replicate), so that the order of the lists
/// changes nothing but rounding. They reach as far among the replicates as Student's t asks for so many
/// groups (the expanded percentile interval: Hesterberg, "What teachers should know about the bootstrap",
/// The American Statistician 2015).
class SlateEstimates {
 public:
  struct Settings {
    std::int64_t ranks = 10;  // later ones are left out
    std::int64_t replicates = 400;
    double confidence = 0.95;
    std::uint64_t seed = 1;
    double clip = 0.0;  // largest weight; 0: any. Smaller ones are biased towards 0
  };
  explicit SlateEstimates(const Settings& settings);

  /// Whether the list's weight is a number that sums can hold. With a clip it always is.
  bool can_weigh(const ComparedList& list) const;
  /// Throws InvalidArgument for a list that it cannot weigh, and takes nothing of it.
  void add(const ComparedList& list);

  std::int64_t lists() const { return lists_; }
  /// Whether all lists have weights.
  bool has_weights() const { return weighed_lists_ == lists_; }
  /// Where lists are of too few clusters for a bootstrap, intervals are NaN.
  bool has_intervals() const { return std::ssize(groups_) >= kFewestClusters * width_; }
  Interval shown() const;  // reward of a list as it was shown
  /// Each only where every list has what it needs.
  std::vector<SlateEstimate> estimates() const;
  /// Returns the support of prefixes up to each rank.
  std::vector<SlateSupport> support() const;
  SlateSupport whole_support() const;
  /// With clipped weights and rewards from 0 to 1 a rank, a bound that the value of prefixes exceeds with
  /// the given confidence, whatever the distribution (Maurer and Pontil, "Empirical Bernstein bounds and
  /// sample-variance penalization", COLT 2009). Lists count as independent.
  double lower_bound() const;

 private:
  static constexpr std::int64_t kFewestClusters = 20;
  /// These figures of weights are kept beside the sums.
  struct Weights {
    double squares = 0.0;
    double largest = 0.0;
    std::int64_t zeros = 0;
    std::int64_t lists = 0;

    void add(double weight);
    SlateSupport support(double sum) const;
  };
  static constexpr std::size_t kGroups = 4096;
  using Sums = std::span<const double>;
  /// An estimate, or where there is none the reward as it was shown; or how much more the first is.
  struct Figure {
    std::optional<SlateEstimator> estimator;
    bool is_difference = false;
  };
  double value_of(SlateEstimator estimator, Sums sums) const;
  double value_of(const Figure& figure, Sums sums) const;
  std::vector<Interval> intervals_of(std::span<const Figure> figures) const;

  Settings settings_;
  std::int64_t width_;
  std::int64_t lists_ = 0;
  std::int64_t weighed_lists_ = 0;
  std::int64_t lists_by_model_ = 0;
  std::vector<double> sums_;          // [width_]
  std::vector<double> groups_;        // [groups with lists × width_]
  std::vector<std::int32_t> row_of_;  // [kGroups] in groups_; −1: the group has no list
  std::vector<double> of_list_;       // [width_]
  std::vector<Weights> prefixes_;     // [ranks]
  Weights whole_;
  double mean_ = 0.0;    // of the prefix estimate of single lists
  double spread_ = 0.0;  // Σ(y − mean)²
};

}  // namespace olrank
