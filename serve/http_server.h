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
  int port = 8080;                            // 0: any that is free
  std::size_t connections = 64;               // at once; further ones get a 503
  std::size_t body_bytes = 16'000'000;        // of a request
  std::chrono::milliseconds request{10'000};  // from a request's first byte to its last
  std::chrono::milliseconds idle{60'000};     // that an open connection may wait for a request
  std::string token;                          // bearer token of everything but health; empty: none
};

/// Throws InvalidArgument for an address beyond this machine without a token.
void require_safe_address(const HttpSettings& settings);

/// HTTP/1.1 for a service.
class HttpServer {
 public:
  /// Listens from here on. Throws what require_safe_address() does, and IoError for an address that cannot
  /// be had.
  HttpServer(Service& service, const HttpSettings& settings);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  /// Serves until stop(); returns when the last answer has been given.
  void run();
  /// Any thread, once run() was called.
  void stop();

 private:
  class Server;
  std::unique_ptr<Server> server_;
  std::atomic<bool> ended_{false};
};

}  // namespace olrank
