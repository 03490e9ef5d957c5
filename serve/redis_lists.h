#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "serve/event_window.h"
#include "serve/impression_file.h"
#include "serve/open_lists.h"
#include "serve/redis_log.h"

namespace olrank {

/// Shown lists on the server of a shared log, so that any process of the prefix takes their feedback, also
/// after restarts. Accepting feedback is one script: the list is there and not answered, and its record
/// joins the stream, or nothing happens. With a window, lists collect their events there, and whichever
/// process finds the window closed makes the record.
///
/// A thread sends lists, many at once, so that ranking does not wait for the server's disk: a process that
/// is killed loses the lists of the last milliseconds. While the server is away, lists stay in this process
/// and follow once it is back.
class RedisLists : public ImpressionStore {
 public:
  struct Settings {
    std::chrono::milliseconds age{3'600'000};  // a list without a window expires after this
    std::chrono::milliseconds window{0};       // 0: a list's first feedback is its only one
    EventTypes types;
    ImpressionLimits limits;  // of lists that wait for the server
  };
  RedisLists(RedisLog& log, Settings settings, std::string start);
  ~RedisLists() override;

  /// Throws InvalidArgument if lists whose window is open have events of types that are not among these.
  static void require_types(RedisClient& client, const EventTypes& types);

  std::string open(FeedbackRecord list, std::int64_t shown) override;
  Outcome add(const std::string& id, std::span<const Click> clicks, std::span<const Event> events) override;
  std::vector<Closed> close_due() override;
  /// Waits for the lists on their way.
  void keep_open() override;
  Counts counts() const override;

 private:
  struct Waiting {
    std::string id;
    std::string bytes;
    std::int64_t since = 0;  // in steady time
  };

  void append_store_commands(const Waiting& list, std::vector<RedisClient::Command>& commands) const;
  void send();
  /// Drops one of those that wait: what is on its way was within the limit before.
  void drop_oldest();
  bool waits_here(const std::string& id) const;
  /// The list, its answer and for how many ms it stays. A list that was shown just now may be on its way; a
  /// few threads wait for one, and others get an ApiError that says to retry.
  std::vector<RedisReply> look_up(const std::string& id) const;
  Outcome accept(const std::string& id, OpenList list, std::span<const Click> clicks);
  Outcome repeat(const std::string& id, const std::string& answer, std::span<const Click> clicks) const;
  Outcome add_events(const std::string& id, OpenList list, std::span<const Event> events);
  Outcome add_late(const std::string& id, std::span<const Event> events);
  std::optional<Closed> close(const std::string& id);

  RedisLog& log_;
  RedisClient& client_;
  Settings settings_;
  std::string start_;
  std::atomic<std::uint64_t> opened_ = 0;
  std::atomic<std::uint64_t> late_ = 0;
  std::chrono::steady_clock::time_point close_due_{};  // of the thread that calls close_due()
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  using Lookers = std::counting_semaphore<>;
  static constexpr std::ptrdiff_t kMostLookers = 8;
  mutable Lookers lookers_{kMostLookers};
  std::deque<Waiting> waiting_;  // to be sent, oldest first
  std::size_t waiting_bytes_ = 0;
  std::vector<Waiting> sending_;  // on their way
  std::uint64_t dropped_ = 0;
  bool refused_ = false;  // by the server, at the last attempt
  bool stopping_ = false;
  std::thread sender_;
};

/// Appends a record to the stream that its server has lost, and closes its list again. With `after` it
/// comes next after these records, or not at all; without, not if its list has been answered. Returns its
/// round; 0 if it was not appended.
std::uint64_t append_again(RedisLog& log, const RedisLists::Settings& settings,
                           const FeedbackRecord& record, const std::string& body, const RecordChain* after);

}  // namespace olrank
