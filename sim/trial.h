#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/state_archive.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/list_metrics.h"
#include "core/online/click_model.h"
#include "core/online/online_ranker.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/progress.h"
#include "sim/curve.h"
#include "sim/recorded_feedback.h"
#include "sim/trial_figures.h"
#include "sim/trial_settings.h"

namespace olrank {

/// The source of queries and clicks: a simulated user, or a recording.
struct TrialUsers {
  const QuerySource* queries = nullptr;
  const ClickModel* clicks = nullptr;
  const RecordedFeedback* recorded = nullptr;  // instead of the two above
  const TrialFairness* fairness = nullptr;     // where documents have groups
};

/// A played round, for traces; spans stay valid until the next round.
struct PlayedRound {
  std::uint32_t round = 0;
  std::int64_t query = 0;
  std::span<const std::int32_t> shown;
  std::span<const std::uint8_t> clicks;
  std::span<const double> propensity = {};  // of each shown rank, as in RankedList
  double ndcg = 0.0;                        // of the shown list
  LearnReport learned;
  std::optional<double> unfairness;  // UF_t of the groups farthest apart, where documents have groups
  std::span<const DocGroup> groups;  // of the query's documents
};

/// One run of rounds: query, list, clicks, learning, and every E rounds an evaluation of the current model.
/// All of its state is in the ranker, in save() and in the keys, so a restored trial continues with the
/// same bits. The only place where features and grades of a query meet.
class Trial : public Stateful {
 public:
  Trial(const TrialSettings& settings, const TrialData& data, const TrialUsers& users,
        const TrialKeys& keys, OnlineRanker& ranker, ExecutionContext& execution);

  std::int64_t rounds_played() const { return round_; }
  bool finished() const { return round_ >= settings_.rounds; }
  /// The round of the last evaluation; -1 before the first.
  std::int64_t evaluated_round() const { return evaluated_round_; }
  /// Whether an evaluation of the current state is due: at the start, every E rounds and at the
  /// end.
  bool evaluation_due() const;

  /// Plays the next round. `detail`, if given, receives the basis of the list, with everything if
  /// `full_detail` is set.
  const PlayedRound& play_round(RoundDetail* detail = nullptr, bool full_detail = false);
  const CurvePoint& evaluate();
  /// An evaluation in two parts: rounds may be played in between if the ranker scores in parallel. Do not
  /// save between the two: the evaluation would be lost.
  void begin_evaluation();
  bool evaluating() const { return evaluating_; }
  bool evaluation_ready() { return !scores_begun_ || ranker_.scores_ready(); }
  const CurvePoint& finish_evaluation();

  const CurvePoint& latest_point() const { return point_; }
  /// The ranker's own lists in the latest rounds; none in a replay.
  const LastLists& last_lists() const { return last_lists_; }
  /// The offline metric of every query in this object's last evaluation.
  std::string queries_csv();
  const StageClock& clock() const { return clock_; }
  /// The clock at the last evaluation.
  const StageClock& evaluation_clock() const { return evaluation_clock_; }
  StageClock& clock() { return clock_; }

  /// Saves what a checkpoint needs and a fingerprint does not cover: the latest lists, and what an
  /// evaluation between two multiples of E has cleared. Goes before save().
  void save_beside(StateWriter& state) const {
    StateFields fields(state);
    const_cast<Trial*>(this)->fields_beside(fields);
  }
  /// Goes before load(), which with more rounds than the saved trial had undoes such an evaluation.
  void load_beside(StateReader& state) {
    StateFields fields(state);
    fields_beside(fields);
  }
  void fields(StateFields& state) override;
  /// Loads only the ranker's state from a saved trial and returns the rounds played. Skips the entries
  /// before it.
  static std::int64_t load_ranker(StateReader& state, OnlineRanker& ranker);

 private:
  using BlockSums = std::array<std::int64_t, ListCertainty::kBlockRanks.size()>;

  /// Sums over the rounds since the last evaluation.
  struct Certainty {
    double share_sum = 0.0;
    std::int64_t share_rounds = 0;  // with at least two documents shown
    std::int64_t blocks_sum = 0;
    std::int64_t rounds = 0;
    BlockSums block_size_sum{};
    BlockSums block_size_rounds{};
    Tally contradicted;      // certain orders contradicted by different grades
    Tally turned_decisions;  // reversed by exact widths
    StatedTallies stated{};
  };

  /// These figures say what lists did to be fair.
  struct Fairness {
    std::int64_t violated_sum = 0;  // since the last evaluation
    std::int64_t violated_rounds = 0;
    std::int64_t unrealisable = 0;  // rounds so far
  };

  /// Since the last evaluation but the one at the end.
  struct Interval {
    std::int64_t evaluated_round = -1;
    Certainty certainty;
    std::vector<double> width_ratios;
    Fairness fairness;
  };

  bool ended_between_evaluations() const {
    return evaluated_round_ == round_ && round_ % settings_.eval_every != 0;
  }
  void fields_beside(StateFields& state);
  static void certainty_fields(Certainty& certainty, StateFields& state);
  void fairness_fields(Fairness& fairness, StateFields& state) const;
  QueryDocs query_docs(std::int64_t query);
  void score_eval_set();
  void play_simulated(RoundContext& context, RoundDetail* detail, bool full_detail);
  void play_recorded(RoundContext& context);
  std::int64_t query_of(std::int64_t round) const;
  void count_fairness(const RankedList& list);
  FairnessPoint fairness_point() const;
  void count_examined(const QueryGrades& grades);
  void count_certainty(const ListCertainty& certainty);
  void count_contradicted(const RankedList& list, const QueryGrades& grades);

  TrialSettings settings_;
  const TrialData& data_;
  PartNames train_names_;
  TrialUsers users_;
  PhiloxKey click_key_;
  OnlineRanker& ranker_;
  ExecutionContext& execution_;

  // State.
  std::int64_t round_ = 0;
  std::int64_t evaluated_round_ = -1;
  bool evaluated_ = false;  // in this process: the evaluator has this trial's results
  std::int64_t pairs_ = 0;
  std::int64_t examined_regret_ = 0;
  OnlineMetrics online_;
  RandomOnline random_;  // of the rounds' queries; loading counts them again
  LastLists last_lists_;
  Certainty certainty_;
  std::vector<double> width_ratios_;  // since the last evaluation
  ExposureLedger exposure_;
  Fairness fairness_;
  Interval interval_;  // before an evaluation between two multiples of E
  StageClock clock_;
  StageClock evaluation_clock_;
  bool evaluating_ = false;
  bool scores_begun_ = false;  // the ranker scores in parallel to the rounds

  Evaluator evaluator_;
  std::vector<float> eval_scores_;
  ClickLog log_;
  std::vector<std::int32_t> shown_;
  std::vector<double> propensity_;
  std::vector<std::int32_t> whole_list_;
  std::vector<std::uint8_t> examined_grades_;
  PlayedRound played_;
  CurvePoint point_;
};

}  // namespace olrank
