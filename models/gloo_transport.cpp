#include "models/gloo_transport.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

namespace olrank {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kJoining{60'000};
/// Rounds may take long. What ends waiting is a broken connection or the watch below.
constexpr milliseconds kExchange{7 * 24 * 3'600'000LL};
constexpr milliseconds kStoreAnswer{8'000};
constexpr milliseconds kBeat{2'000};
constexpr milliseconds kSilence{15'000};  // of a rank that is taken for lost
constexpr milliseconds kNoticing{5'000};  // for the thread that computes

std::string plain_text(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch != nullptr ? torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

c10::intrusive_ptr<c10d::Store> connect_store(const RankPlace& place, bool hosts, milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = hosts;
  options.numWorkers = place.ranks;
  options.waitWorkers = false;
  options.timeout = timeout;
  auto store = c10::make_intrusive<c10d::TCPStore>(place.address, options);
  return c10::make_intrusive<c10d::PrefixStore>(fmt::format("olrank/{}", place.attempt), store);
}

std::shared_ptr<gloo::transport::Device> network_device(const RankPlace& place) {
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"); interface != nullptr && *interface != '\0')
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  const bool one_machine = place.address == "localhost" || place.address.starts_with("127.");
  return one_machine ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                     : c10d::ProcessGroupGloo::createDefaultDevice();
}

/// Tells the other ranks that this one is alive, and finds those that are not.
class Watch {
 public:
  Watch(const RankPlace& place, WhenRankLost when_lost)
      : place_(place),
        when_lost_(std::move(when_lost)),
        store_(connect_store(place, false, kStoreAnswer)),
        seen_(place.ranks, {-1, Clock::now()}),
        thread_([this] { watch(); }) {}
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// A sentence once a rank is lost, else empty.
  std::string lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  struct Beat {
    std::int64_t count;
    Clock::time_point changed;
  };

  bool stops_within(milliseconds time) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, time, [this] { return stopping_; });
  }

  void watch() {
    std::string lost;
    while (lost.empty()) {
      lost = look_around();
      if (lost.empty() && stops_within(kBeat)) return;
    }
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      lost_ = lost;
    }
    if (!stops_within(kNoticing)) when_lost_(lost);
  }

  std::string look_around() {
    try {
      store_->add(fmt::format("beat/{}", place_.rank), 1);
      for (int rank = 0; rank < place_.ranks; ++rank) {
        if (rank == place_.rank) continue;
        const std::int64_t count = store_->add(fmt::format("beat/{}", rank), 0);
        const auto now = Clock::now();
        if (count != seen_[rank].count) seen_[rank] = {count, now};
        if (now - seen_[rank].changed > kSilence)
          return fmt::format("rank {} has not been heard of for {} seconds", rank, kSilence.count() / 1000);
      }
      return "";
    } catch (const std::exception& error) {
      return fmt::format("{} does not answer: {}", place_.address, plain_text(error));
    }
  }

  RankPlace place_;
  WhenRankLost when_lost_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<Beat> seen_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::string lost_;
  std::thread thread_;
};

class GlooTransport : public RankTransport {
 public:
  GlooTransport(const RankPlace& place, const WhenRankLost& when_lost) : place_(place) {
    try {
      store_ = connect_store(place, place.hosts_store, kJoining);
      auto options = c10d::ProcessGroupGloo::Options::create(kJoining);
      options->devices.push_back(network_device(place));
      options->threads = 1;
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store_, place.rank, place.ranks, options);
      watch_ = std::make_unique<Watch>(place, when_lost);
      // A rank that refuses the run ends at once: by then, the others have joined and refuse it as well.
      const std::byte mine{};
      std::vector<std::byte> all(place.ranks);
      GlooTransport::all_gather({&mine, 1}, all);
    } catch (const std::exception& error) {
      leave_broken_group();
      throw RankLost(fmt::format(
          "Rank {} could not join the {} ranks at {}:{} within {} seconds: {}. Start every rank "
          "with the same WORLD_SIZE, MASTER_ADDR and MASTER_PORT.",
          place.rank, place.ranks, place.address, place.port, kJoining.count() / 1000, plain_text(error)));
    }
  }
  ~GlooTransport() override {
    watch_.reset();
    leave_broken_group();
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    // Owned by what may outlive this call: an exchange that a lost rank leaves unfinished.
    at::Tensor from = at::empty({std::ssize(mine)}, at::kByte);
    at::Tensor to = at::empty({std::ssize(all)}, at::kByte);
    std::memcpy(from.mutable_data_ptr(), mine.data(), mine.size());
    c10d::AllgatherOptions options;
    options.timeout = kExchange;
    try {
      wait_for(*group_->_allgather_base(to, from, options));
    } catch (const std::exception& error) {
      report(plain_text(error));
    }
    std::memcpy(all.data(), to.const_data_ptr(), all.size());
  }

 private:
  void wait_for(c10d::Work& work) {
    for (;;) {
      try {
        work.wait(milliseconds(1'000));
        return;
      } catch (const std::exception&) {
        if (work.isCompleted()) {
          work.wait();  // throws if it failed; it may also have ended right after the wait
          return;
        }
      }
      if (const std::string lost = watch_->lost(); !lost.empty()) report(lost);
    }
  }

  /// The group's destructor would wait for an exchange that never completes.
  void leave_broken_group() {
    if (broken_) group_.release();
  }

  [[noreturn]] void report(const std::string& what) {
    broken_ = true;
    throw RankLost(fmt::format(
        "Rank {} lost another of the {} ranks, so this run ends: {}. The last checkpoint is kept, "
        "and --resume continues from it.",
        place_.rank, place_.ranks, what));
  }

  RankPlace place_;
  bool broken_ = false;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace

std::unique_ptr<RankTransport> join_ranks(const RankPlace& place, const WhenRankLost& when_lost) {
  // A rank that has gone is an error of the call that writes to it, and not the end of this process.
  std::signal(SIGPIPE, SIG_IGN);
  return std::make_unique<GlooTransport>(place, when_lost);
}

}  // namespace olrank
