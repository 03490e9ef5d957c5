#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "serve/listener.h"
#include "serve/service.h"

namespace olrank {

/// Serves one or more Services over HTTP/1.1. One thread reads and writes all connections; a bounded number
/// of others does what takes time.
class HttpServer {
 public:
  /// The first service has the paths of docs/SERVICE.md, number N after it the same under kBeside and N.
  static constexpr std::string_view kBeside = "/beside/";

  HttpServer(std::vector<Service*> services, const HttpSettings& settings, Listener& listener);
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
