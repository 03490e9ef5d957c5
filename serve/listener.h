#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace olrank {

struct HttpSettings {
  std::string address = "127.0.0.1";          // a number or a name
  int port = 8080;                            // 0: any free port
  std::size_t connections = 64;               // that have sent a request; more get a 503
  std::size_t body_bytes = 16'000'000;        // limit per request
  std::chrono::milliseconds request{10'000};  // from a request's first byte to its last
  std::chrono::milliseconds idle{60'000};     // an open connection may wait this long for a request
  std::string access_log;                     // file of a line for each answer; -: stdout; empty: none
  std::string token;                          // required by all but the health checks; empty: none
};

}  // namespace olrank

struct sockaddr;

namespace olrank {

/// Whether the number is one of this machine's loopback addresses: 127.0.0.0/8, ::1 or
/// ::ffff:127.0.0.0/104.
bool is_loopback(const sockaddr& address);

/// A listening TCP socket. Clients may connect from now on; they wait until a server accepts them.
class Listener {
 public:
  /// Resolves the address and judges the number that it binds: throws InvalidArgument for a name that does
  /// not resolve and for a number beyond loopback without a token. Throws IoError if it cannot bind.
  explicit Listener(const HttpSettings& settings);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  /// Has the address as a number, which a service without a token accepts as its Host.
  const std::string& url() const { return url_; }
  bool is_v6() const { return v6_; }
  /// The socket, which the caller now owns.
  int release();

 private:
  int socket_ = -1;
  int port_ = 0;
  std::string url_;
  bool v6_ = false;
};

/// Threads that do jobs in the order of their arrival. All but the first start on demand.
class WorkerThreads {
 public:
  explicit WorkerThreads(std::size_t limit);
  /// Returns after all jobs.
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  /// Jobs must not throw.
  void add(std::function<void()> job);

 private:
  void work();

  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace olrank
