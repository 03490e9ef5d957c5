#include "serve/model_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/runtime/log.h"
#include "serve/open_lists.h"

namespace olrank {
namespace {

constexpr std::chrono::milliseconds kPollInterval{100};
constexpr std::chrono::seconds kQuietAfterNews{30};

}  // namespace

void FollowingLog::tell(const std::string& problem, Time now) {
  if (problem == said_ || (said_at_ && now - *said_at_ < kQuietAfterNews)) return;
  said_ = problem;
  said_at_ = now;
  log_warning("{}",
              problem.empty() ? "The latest model is read again." : "The last model stays: " + problem);
}

ModelFollower::ModelFollower(SnapshotReader reader, Fetch fetch, std::string origin)
    : reader_(std::move(reader)),
      fetch_(std::move(fetch)),
      origin_(std::move(origin)),
      learns_from_unshown_(reader_.learns_from_unshown()) {}

ModelFollower::~ModelFollower() {
  stop();
}

void ModelFollower::start() {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stopping_ && !failure_) {
      lock.unlock();
      follow();
      lock.lock();
      wake_.wait_for(lock, kPollInterval, [this] { return stopping_; });
    }
  });
}

void ModelFollower::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ModelFollower::require_running() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void ModelFollower::follow() {
  std::string problem;
  try {
    std::optional<std::string> bytes = fetch_();
    if (!bytes && refused_) return;
    std::shared_ptr<const PublishedRanker> next;
    refused_ = bytes.has_value();
    if (bytes) next = reader_.read(*bytes, origin_);
    refused_ = false;
    const std::lock_guard lock(mutex_);
    confirmed_ = std::chrono::steady_clock::now();
    problem_.clear();
    log_.tell(problem_, confirmed_);
    if (!next) return;
    bytes_ = std::move(*bytes);
    latest_.swap(next);
    return;
  } catch (const SettingsReplaced&) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    return;
  } catch (const RedisAway& error) {  // the client has said so
    problem = error.what();
  } catch (const std::exception& error) {
    problem = error.what();
    log_.tell(problem, std::chrono::steady_clock::now());
  }
  const std::lock_guard lock(mutex_);
  problem_ = std::move(problem);
}

std::shared_ptr<const PublishedRanker> ModelFollower::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::optional<std::string> ModelFollower::failure() const {
  const std::lock_guard lock(mutex_);
  if (latest_->ranker) return std::nullopt;
  return "This replica has no model yet: " +
         (problem_.empty() ? "the learner has published none." : problem_);
}

RankerSource::State ModelFollower::state() {
  const std::lock_guard lock(mutex_);
  return {latest_->round, latest_->pairs, latest_->skipped, {}};
}

RankerSource::State ModelFollower::write_checkpoint() {
  throw Error("This process has no learner: ask the learner for a checkpoint.");
}

RankerSource::Snapshot ModelFollower::snapshot() {
  const std::lock_guard lock(mutex_);
  if (!latest_->ranker) throw Error("This replica has no model yet.");
  return {latest_->round, bytes_};
}

std::optional<double> ModelFollower::model_age() const {
  const std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - confirmed_).count();
}

ModelFollower::Fetch models_of(RedisLog& log) {
  return [&log, known = std::int64_t{-1}]() mutable -> std::optional<std::string> {
    log.client().probe();
    log.poll();
    const std::int64_t round = log.model_round();
    if (round <= known) return std::nullopt;
    std::optional<std::string> model = log.model();
    if (model) known = round;
    return model;
  };
}

namespace {

constexpr std::int64_t kRecordsAtOnce = 500;
constexpr std::chrono::milliseconds kReadWait{100};
constexpr std::int64_t kTellMs = 1000;
constexpr std::chrono::milliseconds kFollowerPublishInterval{100};
/// Models are made and sent in at most a tenth of the time.
constexpr int kRestPerPublish = 9;

}  // namespace

StreamArchive::StreamArchive(RedisLog& stream, FileLog& log, Learner& learner, Settings settings)
    : stream_(stream), log_(log), learner_(learner), settings_(std::move(settings)) {
  stream_.continue_from(log_.rounds(), log_.line_before(log_.bytes()), settings_.accept_loss);
  log_.say_of_disk({"The shared log keeps what is not archived; learning waits for the disk.",
                    "The shared log is archived again."});
  // Refuses a stream that was trimmed too far, and tells other learners what this one still needs.
  stream_.read(log_.rounds(), 1, std::chrono::milliseconds(1));
  stream_.poll();
  stream_.trim(settings_.name, log_.rounds(), settings_.keep, stream_.server_milliseconds());
  stream_.set_archived(log_.rounds(), false);
}

StreamArchive::~StreamArchive() {
  stop();
}

void StreamArchive::start() {
  archiving_ = std::thread([this] { run([this] { archive(); }); });
  publishing_ = std::thread([this] { run([this] { publish(); }); });
}

void StreamArchive::stop() {
  stopping_ = true;
  if (archiving_.joinable()) archiving_.join();
  if (publishing_.joinable()) publishing_.join();
}

void StreamArchive::require_running() const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw StateLost(failure_);
}

void StreamArchive::pause(int milliseconds) const {
  for (int passed = 0; passed < milliseconds && !stopping_; passed += 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

/// Repeats a step. What a full disk or a server that is away hold up goes on once they are back.
void StreamArchive::run(const std::function<void()>& step) {
  std::string refusal;
  while (!stopping_) {
    try {
      step();
      if (!std::exchange(refusal, {}).empty())
        log_warning("The server of the shared log takes all of it again.");
    } catch (const RedisAway&) {
      pause(100);
    } catch (const RedisError& error) {  // no memory left, say
      if (std::exchange(refusal, error.what()).empty()) log_warning("{} It is tried again.", error.what());
      pause(1000);
    } catch (const LogFull&) {
      pause(1000);
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = error.what();
      return;
    }
  }
}

void StreamArchive::archive() {
  stream_.client().probe();
  std::vector<std::string> bodies = stream_.read(log_.rounds(), kRecordsAtOnce, kReadWait);
  stream_.poll();
  try {
    if (!bodies.empty()) log_.append_all(std::move(bodies));
    stream_.set_archived(log_.rounds(), false);
  } catch (const IoError&) {
    stream_.set_archived(log_.rounds(), true);
    throw;
  }
  const std::int64_t now = steady_milliseconds();
  if (now - told_ < kTellMs) return;
  stream_.trim(settings_.name, log_.rounds(), settings_.keep, stream_.server_milliseconds());
  told_ = now;
}

void StreamArchive::publish() {
  pause(20);
  const auto published = learner_.latest();
  if (learner_.failure() || stream_.client().is_away()) return pause(100);
  if (stream_.model_round() >= static_cast<std::int64_t>(published->round)) return;
  RankerSource::Snapshot snapshot;
  try {
    snapshot = learner_.snapshot();
  } catch (const Error&) {  // it has failed, and says so
    return pause(100);
  }
  const auto begin = std::chrono::steady_clock::now();
  stream_.publish(snapshot.round, snapshot.bytes);
  const auto took = snapshot.made_in + (std::chrono::steady_clock::now() - begin);
  pause(static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(
          std::max<std::chrono::nanoseconds>(kFollowerPublishInterval, kRestPerPublish * took))
          .count()));
}

}  // namespace olrank
