#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

namespace olrank {

/// One client's socket. A request has a time by which it must have come and a size: bytes that trickle in
/// cannot hold a thread for longer.
class Connection final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  /// Takes the socket over and closes it.
  explicit Connection(socket_t socket);
  ~Connection() override;

  /// Waits for the first byte of another request, for at most `idle`; `stop` is looked at now and then.
  template <class Stop>
  bool wait_for_request(std::chrono::milliseconds idle, const Stop& stop) {
    const auto until = Clock::now() + idle;
    while (begin_ == end_ && !stop() && Clock::now() < until) {
      if (poll_for(kReadable, std::min(until, Clock::now() + std::chrono::milliseconds(100)))) return true;
    }
    return begin_ != end_;
  }
  /// The next request may take so long and so many bytes.
  void begin_request(std::chrono::milliseconds time, std::size_t bytes);
  bool timed_out() const { return timed_out_; }
  bool too_long() const { return too_long_; }

  /// Ends our side and lets the client read what it was told before it hears of the end.
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
  bool poll_for(Direction direction, Clock::time_point until) const;

  socket_t socket_;
  std::array<char, 1 << 16> buffer_;
  std::size_t begin_ = 0;  // of what was received and not read
  std::size_t end_ = 0;
  Clock::time_point deadline_;
  std::size_t bytes_left_ = 0;
  bool timed_out_ = false;
  bool too_long_ = false;
};

}  // namespace olrank
