#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "serve/service.h"

namespace olrank {

struct HttpSettings {
  std::string address = "127.0.0.1";
  int port = 8080;                            // 0: any free port
  std::size_t connections = 64;               // open at once; more get a 503
  std::size_t body_bytes = 16'000'000;        // limit per request
  std::chrono::milliseconds request{10'000};  // from a request's first byte to its last
  std::chrono::milliseconds idle{60'000};     // an open connection may wait this long for a request
  std::string token;                          // required by all but the health checks; empty: none
};

/// Throws InvalidArgument for a non-loopback address without a token.
void require_safe_address(const HttpSettings& settings);

/// Serves a Service over HTTP/1.1.
class HttpServer {
 public:
  /// Starts to listen. Throws what require_safe_address() throws, and IoError if it cannot bind the
  /// address.
  HttpServer(Service& service, const HttpSettings& settings);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  /// Serves until stop(); returns after the last answer.
  void run();
  /// Thread-safe; call it after run() has been called.
  void stop();

 private:
  class Server;
  std::unique_ptr<Server> server_;
  std::atomic<bool> ended_{false};
};

}  // namespace olrank
