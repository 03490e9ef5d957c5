#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "serve/ranker_source.h"
#include "serve/redis_log.h"
#include "serve/snapshot.h"

namespace olrank {

/// The ranker of a process without a learner: the latest one that a learner elsewhere has published.
class ModelFollower : public RankerSource {
 public:
  /// The bytes of a newer snapshot; nothing if there is none yet. Throws IoError if that cannot be known.
  using Fetch = std::function<std::optional<std::string>()>;

  /// `origin` names the snapshots in messages.
  ModelFollower(SnapshotReader reader, Fetch fetch, std::string origin);
  ~ModelFollower() override;

  void start();
  void stop();
  /// Rethrows what ended the following: replaced settings.
  void require_running() const;

  std::shared_ptr<const PublishedRanker> latest() const override;
  /// Only before the first model.
  std::optional<std::string> failure() const override;
  bool learns_from_unshown() const override { return learns_from_unshown_; }
  State state() override;
  State write_checkpoint() override;
  Snapshot snapshot() override;
  std::optional<double> model_age() const override;

 private:
  void follow();

  SnapshotReader reader_;
  Fetch fetch_;
  std::string origin_;
  bool learns_from_unshown_;
  mutable std::mutex mutex_;
  std::shared_ptr<const PublishedRanker> latest_ = std::make_shared<PublishedRanker>();
  std::string bytes_;  // of latest_
  std::string problem_;
  std::chrono::steady_clock::time_point confirmed_ = std::chrono::steady_clock::now();
  std::exception_ptr failure_;
  bool refused_ = false;  // the last snapshot, which is not fetched again
  bool stopping_ = false;
  std::thread thread_;
};

/// Fetches the models of a shared log.
ModelFollower::Fetch models_of(RedisLog& log);

}  // namespace olrank
