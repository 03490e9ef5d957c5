#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/io/state_archive.h"

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

/// Rings when users have changed: when clicks become less likely under a ranker's predictions than they
/// were. The surprise of a list is how far the log-likelihood of its clicks is below the expected one, in
/// standard deviations. A CUSUM sums up how far surprises are above their running mean, in their running
/// standard deviation and less ½, and rings at 15. One list adds at most 1.5, so that ten lists at least
/// are behind an alarm. If surprises were normal and independent, a false alarm would come every 20 million
/// lists (Siegmund's approximation), and a lasting surprise of 1.5 deviations would ring after 15 lists.
/// Lasting errors of the predictions do not ring. After an alarm the next one needs 15 % more lists than
/// there were, so that strange clicks cannot make a ranker forget again and again.
class ChangeAlarm {
 public:
  /// `predicted` is the probability of a click at each rank, from before the list was learned. True if the
  /// alarm rings. It then learns the usual surprise from the start.
  bool learn(std::span<const double> predicted, std::span<const std::uint8_t> clicks);

  void fields(StateFields& state, std::string_view name);

 private:
  static constexpr double kFirstLists = 100.0;  // in which nothing is usual yet

  double all_ = 0.0;             // lists
  double lists_ = 0.0;           // since the latest alarm
  double silent_ = kFirstLists;  // lists after the latest alarm without another one
  double usual_ = 0.0;           // running mean of surprises
  double variance_ = 1.0;        // running variance of surprises
  double sum_ = 0.0;
};

}  // namespace olrank
