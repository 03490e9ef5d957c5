#pragma once

#include <string>

#include "serve/http_settings.h"

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
  bool is_v6() const { return v6_; }
  /// The socket, which the caller now owns.
  int release();

 private:
  int socket_ = -1;
  int port_ = 0;
  bool v6_ = false;
};

}  // namespace olrank
