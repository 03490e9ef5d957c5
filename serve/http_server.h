#pragma once

#include <memory>
#include <vector>

#include "serve/listener.h"
#include "serve/routes.h"

namespace olrank {

/// Serves the surfaces of a process over HTTP/1.1. One thread reads and writes all connections; a bounded
/// number of others does what takes time.
class HttpServer {
 public:
  HttpServer(std::vector<Surface> surfaces, const HttpSettings& settings, Listener& listener);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Serves until stop(); returns after the last answer.
  void run();
  /// Thread-safe.
  void stop();

 private:
  class Server;
  class Session;
  std::unique_ptr<Server> server_;
};

}  // namespace olrank
