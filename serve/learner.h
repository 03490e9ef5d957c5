#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/io/fingerprint.h"
#include "core/online/frozen_ranker.h"
#include "core/online/online_ranker.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/stage_clock.h"
#include "serve/feedback_log.h"

namespace olrank {

/// What rankings are made with: one round's ranker, and what is worth telling about it.
struct PublishedRanker {
  std::shared_ptr<const FrozenRanker> ranker;
  std::uint64_t round = 0;
  std::int64_t pairs = 0;
  std::vector<RankerFigure> figures;  // as of a moment before at most
};

struct LearnerSettings {
  std::filesystem::path checkpoint;
  std::string identity;                   // a checkpoint of another one is refused
  std::uint64_t checkpoint_every = 1000;  // rounds
};

/// Consumes the feedback log in its order, a record a round, on a thread of its own, and publishes an
/// immutable ranker after it. Its state is a function of the log alone: neither the time of a round nor who
/// ranked meanwhile enters it. After a start it goes on from the last checkpoint to the same bits.
class Learner {
 public:
  /// `ranker` is as before round 1. Throws IoError for a checkpoint that does not belong here, and
  /// InvalidArgument for a kind whose lists cannot be made ahead of their round.
  Learner(std::unique_ptr<OnlineRanker> ranker, FeedbackLog& log, LearnerSettings settings);
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  /// Throws what the constructor would for such a ranker.
  static void require_lists_ahead_of_rounds(const OnlineRanker& ranker);

  void start();
  /// Learns what is in the log for at most `patience`, writes a checkpoint and ends.
  void stop(std::chrono::seconds patience);
  /// Learns what is in the log on the calling thread; for use instead of start().
  void learn_all();

  std::shared_ptr<const PublishedRanker> latest() const;
  bool learns_from_unshown() const { return learns_from_unshown_; }

  /// Of the learner's whole state after a round. Answered between two rounds, as is a checkpoint.
  struct State {
    std::uint64_t round = 0;
    std::int64_t pairs = 0;
    Fingerprint fingerprint;
  };
  State state();
  State write_checkpoint();

  /// Why learning has stopped; nothing while it goes on.
  std::optional<std::string> failure() const;
  std::uint64_t restored_round() const { return restored_round_; }

 private:
  struct Request {
    bool checkpoint = false;
    std::promise<State> answer;
  };

  void restore();
  void run();
  bool consume_next();
  void learn(const FeedbackRecord& record);
  void publish();
  bool refresh_figures();
  void answer(Request& request);
  State present_state() const;
  void write_file();
  /// The log holds everything, so that a checkpoint that fails costs the next start time and nothing else.
  void try_to_write_file();
  State ask(bool checkpoint);

  std::unique_ptr<OnlineRanker> ranker_;
  FeedbackLog& log_;
  LearnerSettings settings_;
  bool learns_from_unshown_;
  std::uint64_t restored_round_ = 0;

  // Of the learning thread.
  ExecutionContext context_;
  StageClock clock_;
  std::unique_ptr<FeedbackLog::Reader> reader_;
  FeedbackRecord record_;
  std::uint64_t round_ = 0;
  std::uint64_t checkpoint_round_ = 0;
  std::int64_t position_ = 0;
  std::int64_t pairs_ = 0;
  std::vector<RankerFigure> figures_;
  std::optional<std::uint64_t> figures_round_;
  std::chrono::steady_clock::time_point figures_due_;  // no sooner, so that they take little of the time
  bool published_ = false;                             // what it knows
  std::chrono::steady_clock::time_point publication_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<const PublishedRanker> latest_;
  std::vector<Request> requests_;
  std::optional<std::string> failure_;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point deadline_;
  std::thread thread_;
};

}  // namespace olrank
