#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/io/state_fields.h"

namespace olrank {

/// How users read a list, learned from clicks under two laws at once. By steps: a user who has reached a
/// rank looks at it with probability γ of that rank (1 at the first), clicks if it attracts, and goes on to
/// the next rank with a probability that depends on whether there was a click. By ranks: a user looks at
/// each rank with a probability of its own (1 at the first), wherever the clicks are. The laws count by how
/// well each has predicted the clicks so far. Clicks alone hardly tell how often low ranks are looked at,
/// so that the second law starts from what is usual: 1/r at rank r. The counts behind these probabilities
/// start as those of Beta(1, 1) after a click, Beta(4, 1) without one, Beta(4, ½) for γ and
/// Beta(16/r, 16 − 16/r) for a look at rank r, and grow by their expected values.
class Examination {
 public:
  /// A reading is what one list tells.
  struct Reading {
    std::vector<double> predicted;  // [shown] probability of a click, before the clicks are seen
    std::vector<double> examined;   // [shown] probability that the document was looked at, given the clicks
    double log_likelihood = 0.0;    // of the clicks, before they are learned
  };

  /// Learns from a list: `attraction` is the probability of a click on each shown document that is looked
  /// at. By steps, ranks down to the last click were reached; beyond it every rank at which the user may
  /// have stopped counts with its probability.
  void learn(std::span<const double> attraction, std::span<const std::uint8_t> clicks, Reading& reading);

  /// Probability to go on after a click, or after a document without one.
  double goes_on(bool clicked) const;
  /// γ of a rank, from 0.
  double looks(std::size_t rank) const;
  /// Probability of a look at a rank, from 0, by the second law.
  double looks_by_rank(std::size_t rank) const;
  /// The probability of the second law.
  double by_rank_share() const;

  /// Brings all counts `share` of the way back to those at the start.
  void forget(double share);

  void fields(StateFields& state, std::string_view prefix);

 private:
  /// The counts of yes and no.
  struct Counts {
    double yes;
    double no;

    double share() const { return yes / (yes + no); }
  };
  static constexpr Counts kAfterClick{1.0, 1.0};
  static constexpr Counts kAfterSkip{4.0, 1.0};
  static constexpr Counts kLook{4.0, 0.5};
  static Counts first_look_by_rank(std::size_t rank);

  void predict(std::span<const double> attraction, std::vector<double>& predicted) const;
  void learn_by_steps(std::span<const double> attraction, std::span<const std::uint8_t> clicks,
                      Reading& reading);
  void learn_by_ranks(std::span<const double> attraction, std::span<const std::uint8_t> clicks,
                      Reading& reading);

  Counts after_click_ = kAfterClick;
  Counts after_skip_ = kAfterSkip;
  std::vector<Counts> looks_;  // by rank; ranks that no list had are not there
  std::vector<Counts> looks_by_rank_;
  double by_rank_lead_ = 0.0;  // log-likelihood of the second law over that of the first
  Reading by_rank_;
  std::vector<double> stopped_;
};

}  // namespace olrank
