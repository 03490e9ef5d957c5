#include "serve/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace olrank {
namespace {

constexpr std::chrono::seconds kLinger{2};
constexpr std::size_t kLingerBytes = std::size_t{64} << 20;

}  // namespace

Connection::Connection(socket_t socket) : socket_(socket) {
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Connection::~Connection() {
  ::close(socket_);
}

void Connection::begin_request(std::chrono::milliseconds time, std::size_t bytes) {
  deadline_ = Clock::now() + time;
  bytes_left_ = bytes;
  timed_out_ = too_long_ = false;
}

bool Connection::poll_for(Direction direction, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd event{socket_, static_cast<short>(direction == kReadable ? POLLIN : POLLOUT), 0};
    const int ready = ::poll(&event, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (Clock::now() >= deadline) return false;
  }
}

ssize_t Connection::read(char* bytes, std::size_t size) {
  if (begin_ == end_) {
    if (!poll_for(kReadable, deadline_)) {
      timed_out_ = true;
      return -1;
    }
    const ssize_t received = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (received <= 0) return received;
    begin_ = 0;
    end_ = static_cast<std::size_t>(received);
  }
  // A sender that trickles bytes must not outlast the deadline.
  if (Clock::now() > deadline_) {
    timed_out_ = true;
    return -1;
  }
  if (bytes_left_ == 0) {
    too_long_ = true;
    return -1;
  }
  const std::size_t count = std::min({size, end_ - begin_, bytes_left_});
  std::memcpy(bytes, buffer_.data() + begin_, count);
  begin_ += count;
  bytes_left_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* bytes, std::size_t size) {
  // The answer gets some time even if the request used up its own.
  if (!poll_for(kWritable, std::max(deadline_, Clock::now() + kLinger))) return -1;
  return ::send(socket_, bytes, size, MSG_NOSIGNAL);
}

void Connection::linger() {
  ::shutdown(socket_, SHUT_WR);
  const auto deadline = Clock::now() + kLinger;
  std::size_t dropped = 0;
  while (dropped < kLingerBytes && poll_for(kReadable, deadline)) {
    const ssize_t received = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (received <= 0) return;
    dropped += static_cast<std::size_t>(received);
  }
}

bool Connection::is_readable() const {
  return begin_ != end_ || poll_for(kReadable, Clock::now());
}

bool Connection::is_writable() const {
  return poll_for(kWritable, Clock::now());
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace olrank
