#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "serve/document_store.h"
#include "serve/file_log.h"
#include "serve/learner.h"
#include "serve/redis_lists.h"
#include "serve/redis_log.h"
#include "serve/snapshot.h"

namespace olrank {

/// Logs a failure and its end. What changes again within half a minute is logged then, as it is by then.
class FollowingLog {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `problem` is empty while all is well.
  void tell(const std::string& problem, Time now);

 private:
  std::string said_;
  std::optional<Time> said_at_;
};

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
  FollowingLog log_;
  std::chrono::steady_clock::time_point confirmed_ = std::chrono::steady_clock::now();
  std::exception_ptr failure_;
  bool refused_ = false;  // the last snapshot, which is not fetched again
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

/// Fetches the models of a shared log.
ModelFollower::Fetch models_of(RedisLog& log);

/// After these records the archive has others than the stream, which has them all the same.
struct ArchiveDiffers : IoError {
  ArchiveDiffers(const std::string& message, std::uint64_t records) : IoError(message), common(records) {}
  std::uint64_t common;
};

/// Ties the learner of this process to a shared log: archives the stream in its own log, from which it
/// learns, and publishes what it has learned. Two such processes of one prefix reach the same bits, so that
/// each is the other's standby.
///
/// A server may come back with fewer records, after a failover or from a backup. Then the archive sends
/// what the stream lacks, with the same rounds. Where other processes have used these rounds meanwhile, it
/// sends its records with new rounds, so that none is lost, and stops, because it has not learned the
/// stream.
class StreamArchive {
 public:
  struct Settings {
    std::string name;           // of this learner among those of the prefix
    std::uint64_t keep = 1000;  // archived records that stay in the stream
    RedisLists::Settings lists{};
    /// Acknowledged records that the server lost are given up if no learner brings them for so long.
    std::chrono::milliseconds patience{10'000};
  };
  /// Throws IoError for a stream that does not continue the log, and ArchiveDiffers if it did so once.
  /// Null `documents`: the records name none.
  StreamArchive(RedisLog& stream, FileLog& log, Learner& learner, Settings settings,
                DocumentStore* documents = nullptr);
  ~StreamArchive();
  StreamArchive(const StreamArchive&) = delete;
  StreamArchive& operator=(const StreamArchive&) = delete;

  void start();
  void stop();
  /// Throws StateLost with what ended the archive: a gap in the stream, replaced settings, a lost folder.
  void require_running() const;

 private:
  struct Common;

  void run(const std::function<void()>& step);
  void restore_counter();
  void trim(std::uint64_t records) const;
  /// Whether the stream has the records of the archive, as far as its state tells.
  bool agrees(const StreamState& state);
  /// Compares record by record.
  Common compare();
  bool mend(bool starts);
  void send_again(Common& both);
  void send_elsewhere(const Common& both, bool starts);
  /// The end of following: throws at a start; later it only says so, as others rank with what they have.
  void part(const std::string& why, std::optional<std::uint64_t> common, bool starts);
  void give_up_lost(const StreamState& state, bool more);
  void archive();
  void publish();
  void pause(int milliseconds) const;

  RedisLog& stream_;
  FileLog& log_;
  Learner& learner_;
  Settings settings_;
  DocumentStore* documents_;
  std::atomic<bool> stopping_ = false;
  std::int64_t told_ = 0;             // when it last told how far it is, in ms
  std::optional<RecordChain> chain_;  // of the archive; none while the stream's begins later
  std::atomic<bool> parted_ = false;
  std::chrono::steady_clock::time_point behind_since_ = std::chrono::steady_clock::now();
  std::thread archiving_;
  std::thread publishing_;
  mutable std::mutex mutex_;
  std::string failure_;
};

}  // namespace olrank
