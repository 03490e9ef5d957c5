#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/fair/exposure.h"
#include "core/io/fingerprint.h"
#include "core/online/online_ranker.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/progress.h"
#include "logs/documents.h"
#include "logs/list_features.h"
#include "serve/arm_ledger.h"
#include "serve/feature_counters.h"
#include "serve/file_log.h"
#include "serve/snapshot.h"

namespace olrank {

struct LearnerSettings {
  std::filesystem::path checkpoint;
  std::string identity;                         // a checkpoint with another identity is rejected
  std::uint64_t checkpoint_every = 1000;        // rounds
  std::int64_t inputs = 0;                      // per document; records with others are rejected. 0: any
  bool accept_loss = false;                     // of a checkpoint that its log does not cover
  std::optional<ExposureRule> exposure{};       // of a service with groups: its records have them
  std::optional<ArmPlan> arms{};                // of a service with arms
  NamedInputs names{};                          // of the inputs
  bool learns_again = false;                    // whether the checkpoint has other inputs
  bool checks_log = true;                       // before it learns, and not as it learns
  const DocumentVersions* documents = nullptr;  // that records name; null: they name none
  std::optional<FeatureSchema> schema{};        // of a service with one, for its counters
  bool skips_lost_documents = false;            // records that name them, which a shared log may have lost
};

/// Consumes the feedback log in order on a thread of its own, one record per round, and publishes immutable
/// rankers. Its state is a function of the log alone: neither timing nor concurrent ranking requests affect
/// it. A restart continues from the last checkpoint to the same bits. A record that the ranker cannot learn
/// (NumericError) is skipped and counted, and learning goes on with the next.
class Learner : public RankerSource {
 public:
  /// `ranker` is in its state before round 1. Throws IoError for a checkpoint of another service or log,
  /// DataError for a log whose records do not fit the ranker, and InvalidArgument for a kind that cannot
  /// make lists ahead of their round. Changes no file before start().
  Learner(std::unique_ptr<OnlineRanker> ranker, FileLog& log, LearnerSettings settings);
  ~Learner() override;

  /// Throws InvalidArgument for a kind that the constructor would reject.
  static void require_lists_ahead_of_rounds(const OnlineRanker& ranker);

  /// An accepted start: repairs the log, and moves a checkpoint aside that does not belong to it.
  void begin_writing();
  void start();
  /// Learns the rest of the log for at most `timeout`, writes a checkpoint and joins the thread. False if
  /// the checkpoint could not be written, as a warning says.
  /// Without `saves` there is no checkpoint. start() may follow.
  bool stop(std::chrono::seconds timeout, bool saves = true);
  /// Learns the log on the calling thread, as an alternative to start(). Changes no file if the log is only
  /// read.
  void learn_all();
  /// Learns the log as learn_all() does, but changes no file; start() may follow. False once it has to
  /// stop.
  bool catch_up(const std::atomic<bool>& stop);

  std::shared_ptr<const PublishedRanker> latest() const override;
  /// Lists of a ranker that has no snapshots are made by the learning thread, between rounds: all that
  /// wait at once.
  std::shared_ptr<const PublishedRanker> rank(ExecutionContext& context, const RankingTask& task,
                                              Ranking& ranking) override;
  Model model() override;
  bool learns_from_unshown() const override { return learns_from_unshown_; }

  /// The learning thread takes a summary, a checkpoint or a snapshot between rounds. Those who ask for
  /// summaries often wait, so that it has most of its time for learning.
  State state() override { return request(Wanted::kSummary).state; }
  State write_checkpoint() override { return request(Wanted::kCheckpoint).state; }
  Snapshot snapshot() override { return request(Wanted::kSnapshot).snapshot; }

  std::optional<std::string> failure() const override;
  std::uint64_t restored_round() const { return restored_round_; }
  /// Null without any in the schema.
  const FeatureCounters* counters() const { return counters_ ? &*counters_ : nullptr; }
  /// The ledger counts all lists that were in the log when the learner was made.
  const ExposureLedger& logged_exposure() const { return logged_exposure_; }

 private:
  enum class Wanted { kSummary, kCheckpoint, kSnapshot, kModel };
  struct Answer {
    State state{};
    Snapshot snapshot{};
    Model model{};
  };
  struct Request {
    Wanted wanted = Wanted::kSummary;
    std::promise<Answer> answer;
  };

  /// A list that a request waits for.
  struct WaitingList {
    ListRequest request;
    std::shared_ptr<const PublishedRanker> published{};  // that made it; null while it waits
  };
  /// This is published of a ranker that has no snapshots.
  class OwnLists;

  void make_lists(std::span<WaitingList* const> lists);
  void restore();
  /// The arms' figures of the records that are learned already, for a plan that the checkpoint does not
  /// have.
  void count_arms_again();
  /// Tells what is wrong with a checkpoint of round_ at position_, whose last record had this checksum;
  /// empty if it belongs to the log.
  std::string contradiction(const std::string& last_check) const;
  void require_fitting_log();
  void require_documents();
  /// Takes the record from its line, with the inputs of the ranker.
  /// Returns why the record is skipped; empty if it is not.
  std::string take(std::string_view line, std::uint64_t number, FeedbackRecord& record);
  void run();
  std::vector<Request> take_due_requests();
  /// When an idle thread has to publish or to save next; nothing if only a wake makes work.
  std::optional<std::chrono::steady_clock::time_point> next_due() const;
  /// The last checkpoint, and then what requests see.
  void finish();
  bool consume_next();
  void learn(const FeedbackRecord& record);
  void skip(const std::string& reason);
  bool publish_due(bool more) const;
  void publish();
  bool refresh_figures();
  void answer(Request& request);
  /// Called by the learning thread, or where there is none.
  Answer made(Wanted wanted);
  State present_state() const;
  void save_checkpoint();
  /// Logs a failure instead of throwing: the log holds everything, so a missing checkpoint only costs the
  /// next start time. Of failures in a row it logs the first, and the one at the end.
  void try_save_checkpoint(bool last);
  bool has_rounds_for_checkpoint() const;
  void save_due_checkpoint();
  Answer request(Wanted wanted);

  std::unique_ptr<OnlineRanker> ranker_;
  FileLog& log_;
  LearnerSettings settings_;
  FeatureMap names_;
  bool learns_from_unshown_;
  bool makes_lists_;
  std::uint64_t restored_round_ = 0;
  ExposureLedger logged_exposure_;

  // Used by the learning thread only.
  ExecutionContext context_;
  StageClock clock_;
  std::unique_ptr<FileLog::Reader> reader_;
  FeedbackRecord record_;
  std::string last_check_;   // of the last record learned
  bool outdated_ = false;    // the checkpoint file, which is set aside
  bool superseded_ = false;  // by the log, which has all that it knows: it is removed
  std::uint64_t lost_ = 0;   // rounds that it has learned and a log that ends earlier lacks
  std::uint64_t round_ = 0;
  std::uint64_t checkpoint_round_ = 0;                    // of the last one, or of an attempt that was due
  bool unsaved_ = false;                                  // that failed
  std::chrono::steady_clock::time_point checkpoint_due_;  // limits the time spent on them
  std::int64_t position_ = 0;
  std::int64_t pairs_ = 0;
  std::uint64_t skipped_ = 0;
  ExposureLedger exposure_;        // of the rounds so far
  std::optional<ArmLedger> arms_;  // of the rounds so far
  std::optional<FeatureCounters> counters_;
  std::vector<RankerFigure> figures_;
  std::optional<std::uint64_t> figures_round_;
  std::chrono::steady_clock::time_point figures_due_;  // limits the time spent on figures
  std::optional<State> summary_;                       // of this round, if somebody has asked
  std::chrono::steady_clock::time_point summary_due_;  // limits the time spent on them
  bool published_ = false;                             // whether latest_ is up to date
  std::chrono::steady_clock::time_point published_at_;
  std::chrono::steady_clock::time_point publish_due_;  // limits the time spent on copies

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<const PublishedRanker> latest_;
  std::vector<Request> requests_;
  std::vector<WaitingList*> lists_;
  std::condition_variable listed_;
  bool ended_ = false;  // the learning thread
  std::optional<std::string> failure_;
  bool stopping_ = false;
  bool saves_at_end_ = true;
  std::chrono::steady_clock::time_point deadline_;
  std::thread thread_;
};

}  // namespace olrank
