#include "serve/listener.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "core/throw_error.h"

namespace olrank {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& name, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), fmt::format("{}", port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

Addresses addresses_of(const HttpSettings& settings) {
  // The name server has no say in what localhost is.
  const std::string name = settings.address == "localhost" ? "127.0.0.1" : settings.address;
  if (Addresses numbers = resolve(name, settings.port, AI_NUMERICHOST)) return numbers;
  if (Addresses named = resolve(name, settings.port, AI_ADDRCONFIG)) return named;
  throw_error<InvalidArgument>(
      "--address '{}' is neither an IP address nor a name that this machine can resolve.",
      settings.address);
}

std::string number_of(const addrinfo& address) {
  char text[NI_MAXHOST] = "";
  const bool known = ::getnameinfo(address.ai_addr, address.ai_addrlen, text, sizeof text, nullptr, 0,
                                   NI_NUMERICHOST) == 0;
  return known ? text : "";
}

int port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

bool listens(int socket, const addrinfo& address) {
  const int on = 1;
  const int off = 0;
  // Ports of closed connections can be reused at once, but two services cannot share one.
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  return ::bind(socket, address.ai_addr, address.ai_addrlen) == 0 && ::listen(socket, SOMAXCONN) == 0;
}

}  // namespace

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

Listener::Listener(const HttpSettings& settings) {
  const Addresses addresses = addresses_of(settings);
  const addrinfo& address = *addresses;
  if (settings.token.empty() && !is_loopback(*address.ai_addr)) {
    throw_error<InvalidArgument>(
        "--address {} is open to other machines and requires --token-file; or use 127.0.0.1.",
        settings.address);
  }
  socket_ = ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (socket_ < 0 || !listens(socket_, address)) {
    const int error = errno;
    if (socket_ >= 0) ::close(socket_);
    if (error == EADDRINUSE) {
      throw_error<IoError>(
          "{}:{} is already in use. Stop the other program or choose another --port; 0 picks a free one.",
          settings.address, settings.port);
    }
    if (error == EACCES && settings.port > 0 && settings.port < 1024) {
      throw_error<IoError>(
          "Port {} is privileged: as an ordinary user, choose a --port from 1024 on and let a proxy or a "
          "firewall rule forward to it, or give the program the capability CAP_NET_BIND_SERVICE.",
          settings.port);
    }
    if (error == EADDRNOTAVAIL) {
      throw_error<InvalidArgument>(
          "--address {} is no address of this machine: choose one of its own, or 127.0.0.1.",
          settings.address);
    }
    throw IoError("listen on", fmt::format("{}:{}", settings.address, settings.port), error);
  }
  port_ = port_of(socket_);
  v6_ = address.ai_family == AF_INET6;
  url_ = fmt::format("http://{}{}{}:{}", v6_ ? "[" : "", number_of(address), v6_ ? "]" : "", port_);
}

Listener::~Listener() {
  if (socket_ >= 0) ::close(socket_);
}

int Listener::release() {
  return std::exchange(socket_, -1);
}

WorkerThreads::WorkerThreads(std::size_t limit) : limit_(limit) {
  threads_.emplace_back([this] { work(); });
}

WorkerThreads::~WorkerThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerThreads::add(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  wake_.notify_one();
  if (jobs_.size() <= idle_ || threads_.size() >= limit_) return;
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // The system has no more threads: the running ones do the job.
  }
}

void WorkerThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace olrank
