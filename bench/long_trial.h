#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/measurement_file.h"
#include "core/io/fingerprint.h"
#include "core/io/folder.h"
#include "core/runtime/execution_context.h"
#include "jobs/experiment.h"
#include "jobs/job_folder.h"
#include "jobs/trial_job.h"

namespace olrank {

/// A span tells what the rounds of a trial have cost since the one before, and what it holds after them.
struct LongSpan {
  std::int64_t round = 0;             // the last one
  std::int64_t rounds = 0;            // in this span
  std::int64_t pairs = 0;             // observed so far
  double seconds = 0.0;               // per round of this span, of processor time
  double mean_seconds = 0.0;          // per round since the first
  double unit_seconds = 0.0;          // of the product unit in this span, of processor time
  double offline_ndcg = 0.0;          // of the model after the span
  double posterior_bytes = 0.0;       // NaN for a ranker that does not tell
  double drift = 0.0;                 // NaN for a ranker that does not tell
  std::int64_t checkpoint_bytes = 0;  // of all files that a resumed run reads
  std::int64_t resident_bytes = 0;    // of the process
  std::vector<std::pair<std::string, double>> stages;  // seconds per round of this span, on the clock
};

/// One trial of a plan, with its first user, fold and seed, played piece by piece. Evaluations and
/// checkpoints are off its clock.
class LongTrial {
 public:
  LongTrial(const ExperimentPlan& plan, const ExperimentRanker& ranker);

  void play(std::int64_t rounds);
  /// Ends a span: evaluates and writes a checkpoint.
  LongSpan end_span(const ProductUnit& unit);
  /// Ends the trial like a span. Then plays its rounds since the latest checkpoint again, with a new ranker
  /// that is restored from there; `same_bits` says whether both end in the same state.
  LongSpan end(const ProductUnit& unit, bool& same_bits);

 private:
  LongSpan measured(const ProductUnit& unit);
  bool resumed_alike() const;

  const ExperimentPlan& plan_;
  const ExperimentRanker& ranker_plan_;
  TrialIdentity identity_;
  Recipe recipe_;
  std::shared_ptr<const FoldData> fold_;
  mutable ExecutionContext execution_;
  ScratchFolder scratch_;
  std::unique_ptr<JobFolder> folder_;
  TrialJob job_;

  std::int64_t last_round_ = 0;            // of the latest span
  double seconds_ = 0.0;                   // of the rounds since then
  double all_seconds_ = 0.0;               // of the rounds before
  std::vector<StageClock::Stage> stages_;  // at the end of the latest span
};

struct LongRanker {
  std::string name;
  std::vector<LongSpan> spans;
  bool same_bits = false;  // of a trial that was resumed from the checkpoint before the last
};

/// The report tells what `olrank bench long` has measured.
struct LongReport {
  std::string command;
  Machine machine;
  std::string data;
  std::string user;
  std::int64_t fold = 1;
  std::int64_t seed = 1;
  std::vector<LongRanker> rankers;
};

/// The mean round of the last span over that of the third, which comes after a trial's beginning; NaN with
/// fewer than four spans.
double growth_of(const LongRanker& ranker);

std::string long_json(const LongReport& report);
/// A line for each span and ranker, and a sentence for each ranker. Times are also told over those of the
/// first ranker.
std::string long_text(const LongReport& report, std::int64_t columns);

}  // namespace olrank
