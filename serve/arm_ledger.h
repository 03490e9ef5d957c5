#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/feedback/feedback_record.h"
#include "core/io/state_archive.h"
#include "core/statistics/intervals.h"
#include "serve/arms.h"

namespace olrank {

/// The report tells what the feedback so far says about the arms of a service.
struct ArmReport {
  struct Arm {
    std::string name;
    double share = 0.0;  // of the traffic now, in percent
    std::int64_t lists = 0;
    std::int64_t clicks = 0;
    double reward = 0.0;  // what users did is worth; without types of events the same
    /// Reward a list more than the baseline's lists got, since the shares changed last. None for the
    /// baseline, and before both arms have enough lists.
    std::optional<Interval> difference;
  };
  /// A change of the learner's share.
  struct Change {
    std::uint64_t round = 0;
    double from = 0.0;
    double to = 0.0;
    std::string reason;
  };
  std::string id;
  std::size_t baseline = 0;
  std::vector<Arm> arms;
  // Interleaved lists give these: how many the first or the second arm's documents won by clicks, and the
  // mean of 1, 0 and −1.
  std::array<std::int64_t, 2> wins{};
  std::int64_t ties = 0;
  std::optional<Interval> preference;
  bool promotes = false;
  std::vector<Change> changes;  // the latest ones, of an automatic promotion
  std::int64_t rollbacks = 0;

  std::vector<double> shares() const;
  /// An object of JSON, and metrics in the Prometheus text format.
  std::string json() const;
  std::string metrics() const;
};

/// Counts the feedback of a service's arms in the log's order, and with promote=auto moves the learner's
/// share: a function of the plan and the log alone. The intervals hold at all times at once.
///
/// The learner begins with 0 %. It gets 1 % after `observe` lists, and then 5, 25 and 100 % of what the
/// holdout leaves, each as soon as the lower bound of its difference to the incumbent, times its next
/// share, is above −margin. It falls back to 0 % once the upper bound, of the lists since the last change
/// or of the last 1,000 to 2,000, is below −margin; each time it then has to observe twice as long.
class ArmLedger {
 public:
  explicit ArmLedger(ArmPlan plan);

  const ArmPlan& plan() const { return plan_; }
  /// Counts the record if it was shown under this plan. Whether that changed the shares.
  bool observe(const FeedbackRecord& record);
  ArmReport report() const;

  void save(StateWriter& state) const;
  /// False, without any effect, for the state of another plan.
  bool load(StateReader& state);
  /// All of the state but the ID of the plan, which load() compares first.
  void fields(StateFields& fields);

 private:
  /// The means of all arms over the same lists.
  using Comparison = std::vector<ClusteredMean>;
  static constexpr std::array<double, 5> kStages = {0.0, 1.0, 5.0, 25.0, 100.0};  // %
  static constexpr std::int64_t kRecent = 1000;
  static constexpr std::size_t kChanges = 20;  // remembered

  std::vector<double> shares_at(std::size_t stage) const;
  std::optional<Interval> difference(const Comparison& comparison, std::size_t arm) const;
  std::size_t learner() const { return 1 - plan_.baseline(); }  // of a promotion's two arms
  bool consider_stage(std::uint64_t round);
  bool move_to(std::size_t stage, std::uint64_t round, std::string reason);

  ArmPlan plan_;
  std::string id_;
  std::vector<double> shares_;
  std::vector<std::int64_t> lists_;  // of each arm, since the plan began
  std::vector<std::int64_t> clicks_;
  std::vector<double> rewards_;
  Comparison current_;                   // since the last change of the shares
  ClusteredMean preference_;             // of interleaved lists
  std::array<std::int64_t, 3> votes_{};  // for the first arm, for the second, ties
  // A promotion uses these.
  std::size_t stage_ = 0;
  std::int64_t since_change_ = 0;  // lists
  std::int64_t rollbacks_ = 0;
  std::array<Comparison, 2> recent_;  // begun up to 2,000 and up to 1,000 lists ago
  std::vector<ArmReport::Change> changes_;
};

}  // namespace olrank
