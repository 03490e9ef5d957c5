#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

namespace olrank {

/// One client's socket. Each request has a deadline and a size limit, so a slow sender cannot hold a thread
/// beyond them.
class Connection final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  /// Takes ownership of the socket.
  explicit Connection(socket_t socket);
  ~Connection() override;

  /// Waits up to `idle` for the first byte of the next request; polls `stop` every 100 ms.
  template <class Stop>
  bool wait_for_request(std::chrono::milliseconds idle, const Stop& stop) {
    const auto deadline = Clock::now() + idle;
    while (begin_ == end_ && !stop() && Clock::now() < deadline) {
      if (poll_for(kReadable, std::min(deadline, Clock::now() + std::chrono::milliseconds(100))))
        return true;
    }
    return begin_ != end_;
  }
  /// Sets the next request's time and size limits.
  void begin_request(std::chrono::milliseconds time, std::size_t bytes);
  bool timed_out() const { return timed_out_; }
  bool too_long() const { return too_long_; }

  /// Shuts down our side, then drains the client's, so that a reset cannot destroy the last answer.
  void linger();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* bytes, std::size_t size) override;
  ssize_t write(const char* bytes, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  enum Direction { kReadable, kWritable };
  bool poll_for(Direction direction, Clock::time_point deadline) const;

  socket_t socket_;
  std::array<char, 1 << 16> buffer_;
  std::size_t begin_ = 0;  // of the bytes received but not yet read
  std::size_t end_ = 0;
  Clock::time_point deadline_;
  std::size_t bytes_left_ = 0;
  bool timed_out_ = false;
  bool too_long_ = false;
};

}  // namespace olrank
