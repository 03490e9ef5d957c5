#include "serve/model_follower.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

constexpr std::chrono::milliseconds kPollInterval{100};

}  // namespace

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
    for (;;) {
      follow();
      for (auto passed = kPollInterval.zero(); passed < kPollInterval;
           passed += std::chrono::milliseconds(20)) {
        {
          const std::lock_guard lock(mutex_);
          if (stopping_ || failure_) return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
  });
}

void ModelFollower::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
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
    const std::lock_guard lock(mutex_);
    if (problem_ != problem) log_warning("The last model stays: {}", problem);
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

}  // namespace olrank
