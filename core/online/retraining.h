#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// When a ranker trains on its whole history, and when on a sample of it: one rule for CPU and device.
namespace olrank {

enum class Retrain { kEveryRound, kGrowth };

struct RetrainingRule {
  Retrain retrain = Retrain::kEveryRound;
  double growth = 0.05;           // share of new pairs that makes a training on the whole history due
  std::int64_t replay_steps = 4;  // of a round between two such trainings; 0: none
  std::int64_t replay = 256;      // pairs drawn from the history for these steps

  /// Whether some rounds train on a sample of the history.
  bool replays() const { return retrain == Retrain::kGrowth && replay_steps > 0; }
};

/// A round trains on one of these.
enum class TrainingExtent { kHistory, kSample, kNothing };

/// With kGrowth a training on the whole history of n pairs, T of them distinct, is due once growth · T new
/// distinct ones have come since the latest, or growth · n in all: each pair then takes part in
/// steps/growth passes, however long the history. Where the same pairs come again and again, T stays and
/// pairs go on coming; without their part of the rule, quality on MQ2008 wavered after 10,000 rounds.
class RetrainingSchedule {
 public:
  /// Below so many observed pairs every round trains on the whole history.
  static constexpr std::int64_t kShortHistory = 200;

  /// The sizes of a history: observed pairs, and the distinct ones of them.
  struct Sizes {
    std::int64_t observed = 0;
    std::int64_t distinct = 0;
  };

  explicit RetrainingSchedule(const RetrainingRule& rule) : rule_(rule) {}

  /// Says what a round that brought pairs trains on.
  TrainingExtent extent(const Sizes& sizes) const;
  /// It has to be called after a training on the whole history.
  void trained(const Sizes& sizes) { latest_ = sizes; }

  /// The sizes at the latest such training.
  const Sizes& latest() const { return latest_; }
  void set_latest(const Sizes& sizes) { latest_ = sizes; }
  const RetrainingRule& rule() const { return rule_; }

 private:
  RetrainingRule rule_;
  Sizes latest_;
};

}  // namespace olrank

// The NumericErrors that CPU and device rankers throw alike.
namespace olrank {

/// Where the loss of a training that no repeat could save left the finite numbers, or exploded.
struct DivergedTraining {
  std::uint32_t round = 0;
  std::int64_t step = 0;
  double loss = 0.0;
  double learning_rate = 0.0;
  std::optional<double> lambda;  // set if a larger one helps, too
};
[[noreturn]] void throw_diverged(const DivergedTraining& training);

/// A covariance as its errors describe it.
struct CovarianceName {
  std::string_view form;   // "dual", "primal", …
  std::int64_t pairs = 0;  // -1: not known
  double lambda = 0.0;
};
/// "The dual covariance of 7 pairs".
std::string text_of(const CovarianceName& covariance);
/// A rebuild did not help; `what` is a clause: "its residual is 0.1".
[[noreturn]] void throw_lost_precision(const CovarianceName& covariance, std::string_view what);

/// Squared widths of a covariance that cannot be computed afresh are not finite.
[[noreturn]] void throw_lost_widths(std::string_view covariance);
/// So many squared widths of a query's documents are not finite, and no list can be made for them.
[[noreturn]] void throw_lost_list_widths(std::int64_t lost, std::int64_t docs);

/// The score of a query's document `doc` is NaN.
[[noreturn]] void throw_bad_score(std::int64_t doc);

}  // namespace olrank
