#include "models/gloo_transport.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/runtime/interrupt.h"

namespace olrank {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kJoining{20'000};
/// Rounds may take long. What ends waiting is a broken connection or the watch below.
constexpr milliseconds kExchange{7 * 24 * 3'600'000LL};
constexpr milliseconds kStoreAnswer{8'000};
constexpr milliseconds kBeat{2'000};
constexpr milliseconds kSilence{15'000};  // of a rank that is taken for lost
constexpr milliseconds kNoticing{5'000};  // for the thread that computes
constexpr milliseconds kLook{500};
constexpr milliseconds kStopping{3'000};  // for all ranks to end a round after a signal
constexpr milliseconds kLastCall{1'000};  // for a call that is under way when the watch ends

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

/// What `make` returns, if it does so in time. If not, its thread goes on with what it owns.
template <class Make>
auto made_within(milliseconds time, Make make) {
  auto task = std::make_shared<std::packaged_task<std::invoke_result_t<Make>()>>(std::move(make));
  auto made = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (made.wait_for(time) != std::future_status::ready) throw std::runtime_error("nothing answers");
  return made.get();
}

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}
std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

/// Waits until as many ranks as there are have come. Throws InvalidArgument on every rank if they do not
/// agree on how many that is.
void meet(c10d::Store& store, const RankPlace& place) {
  constexpr milliseconds kNews{100};
  const std::string mine = std::to_string(place.ranks);
  const std::string first = text_of(store.compareSet("world", {}, bytes_of(mine)));
  if (first != mine) {
    store.set("refused", bytes_of(fmt::format(
                             "WORLD_SIZE is {} on rank {}, and {} on another: start every rank with the "
                             "same WORLD_SIZE.",
                             mine, place.rank, first)));
  }
  store.add("come", 1);
  const auto begin = Clock::now();
  while (Clock::now() - begin < kJoining) {
    if (store.check({"refused"})) {
      const std::string refusal = text_of(store.get("refused"));
      if (place.hosts_store) std::this_thread::sleep_for(10 * kNews);  // until the others have read it
      throw InvalidArgument(refusal);
    }
    if (store.add("come", 0) >= place.ranks) return;
    std::this_thread::sleep_for(kNews);
  }
  throw std::runtime_error("some ranks have not come");
}

/// The connections of a rank.
struct Connections {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::Store> watched;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;

  static Connections of(const RankPlace& place) {
    Connections made;
    made.store = connect_store(place, place.hosts_store, kJoining);
    meet(*made.store, place);
    auto options = c10d::ProcessGroupGloo::Options::create(kJoining);
    options->devices.push_back(network_device(place));
    options->threads = 1;
    made.group = c10::make_intrusive<c10d::ProcessGroupGloo>(made.store, place.rank, place.ranks, options);
    made.watched = connect_store(place, false, kStoreAnswer);
    return made;
  }
};

/// Tells the other ranks that this one is alive, and finds those that are not. A call to the store may
/// never return, whatever its time-out says: the first rank, which hosts it, may stand still. So one thread
/// calls, and another watches the time.
class Watch {
 public:
  Watch(const RankPlace& place, c10::intrusive_ptr<c10d::Store> store, WhenRankLost when_lost)
      : when_lost_(std::move(when_lost)),
        beats_(std::make_shared<Beats>(place, std::move(store))),
        caller_([beats = beats_] { beats->call(); }),
        thread_([this] { watch(); }) {}
  ~Watch() {
    beats_->stop();
    thread_.join();
    if (beats_->has_ended_within(kLastCall)) {
      caller_.join();
    } else {
      caller_.detach();  // its call keeps what it needs
    }
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// A sentence once a rank is lost, else empty.
  std::string lost() const { return beats_->lost(); }

 private:
  /// What the two threads share.
  class Beats {
   public:
    Beats(const RankPlace& place, c10::intrusive_ptr<c10d::Store> store)
        : place_(place),
          store_(std::move(store)),
          seen_(place.ranks, {-1, Clock::now()}),
          answered_(Clock::now()) {}

    void call() {
      std::string lost;
      while (lost.empty()) {
        lost = look_around();
        std::unique_lock lock(mutex_);
        answered_ = Clock::now();
        if (lost_.empty()) lost_ = lost;
        changed_.notify_all();
        if (lost.empty() && changed_.wait_for(lock, kBeat, [this] { return stopping_; })) break;
      }
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }

    void stop() {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    bool stops_within(milliseconds time) {
      std::unique_lock lock(mutex_);
      return changed_.wait_for(lock, time, [this] { return stopping_; });
    }
    bool has_ended_within(milliseconds time) {
      std::unique_lock lock(mutex_);
      return changed_.wait_for(lock, time, [this] { return ended_; });
    }
    std::string lost() const {
      const std::lock_guard lock(mutex_);
      if (lost_.empty() && Clock::now() - answered_ > kSilence)
        lost_ = fmt::format("{} has not answered for {} seconds", place_.address, kSilence.count() / 1000);
      return lost_;
    }

   private:
    struct Beat {
      std::int64_t count;
      Clock::time_point changed;
    };

    std::string look_around() {
      try {
        store_->add(fmt::format("beat/{}", place_.rank), 1);
        for (int rank = 0; rank < place_.ranks; ++rank) {
          if (rank == place_.rank) continue;
          const std::int64_t count = store_->add(fmt::format("beat/{}", rank), 0);
          const auto now = Clock::now();
          if (count != seen_[rank].count) seen_[rank] = {count, now};
          if (now - seen_[rank].changed > kSilence)
            return fmt::format("rank {} has not been heard of for {} seconds", rank,
                               kSilence.count() / 1000);
        }
        return "";
      } catch (const std::exception& error) {
        return fmt::format("{} does not answer: {}", place_.address, plain_text(error));
      }
    }

    RankPlace place_;
    c10::intrusive_ptr<c10d::Store> store_;
    std::vector<Beat> seen_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    Clock::time_point answered_;
    bool stopping_ = false;
    bool ended_ = false;
    mutable std::string lost_;
  };

  void watch() {
    std::string lost;
    while (lost.empty()) {
      if (beats_->stops_within(kLook)) return;
      lost = beats_->lost();
    }
    if (!beats_->stops_within(kNoticing)) when_lost_(lost);
  }

  WhenRankLost when_lost_;
  std::shared_ptr<Beats> beats_;
  std::thread caller_;
  std::thread thread_;
};

class GlooTransport : public RankTransport {
 public:
  GlooTransport(const RankPlace& place, const WhenRankLost& when_lost) : place_(place) {
    try {
      Connections made = made_within(kJoining + kNoticing, [place] { return Connections::of(place); });
      store_ = std::move(made.store);
      group_ = std::move(made.group);
      watch_ = std::make_unique<Watch>(place, std::move(made.watched), when_lost);
      // A rank that refuses the run ends at once: by then, the others have joined and refuse it as well.
      const std::byte mine{};
      std::vector<std::byte> all(place.ranks);
      GlooTransport::all_gather({&mine, 1}, all);
    } catch (const InvalidArgument&) {
      throw;
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
    std::optional<Clock::time_point> asked;  // to stop, by a signal
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
      if (InterruptGuard::requested() == 0) continue;
      if (!asked) asked = Clock::now();
      if (Clock::now() - *asked > kStopping)
        report("a signal came, and the others do not stop with this rank");
    }
  }

  /// The group's destructor would wait for an exchange that never completes.
  void leave_broken_group() {
    if (broken_) group_.release();
  }

  [[noreturn]] void report(const std::string& what) {
    broken_ = true;
    throw RankLost(fmt::format("Rank {} lost another of the {} ranks, so this run ends: {}.", place_.rank,
                               place_.ranks, what));
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
