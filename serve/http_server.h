#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api_error.h"
#include "serve/listener.h"
#include "serve/request_head.h"
#include "serve/service.h"

namespace olrank {

struct Answer {
  int status = 200;
  std::string body;
  std::string_view type = "application/json";
  std::string_view policy = {};  // Content-Security-Policy; empty: the answer is no page
  std::string tag;               // ETag; empty: it has none
  std::string allow;             // the methods that the path has; empty: the method is one of them
  int retry_after = 0;           // seconds; 0: the same request cannot succeed
};

/// A path with its method, and what the service does for it.
struct Route {
  enum Cost {
    kNothing,    // answered at once
    kComputing,  // needs a core
    kWaiting,    // may wait for the disk or the learner
  };
  enum Body { kNoBody, kNeedsBody };
  std::string_view method;
  std::string_view path;
  Cost cost;
  std::function<std::string(Service&, const std::string& body)> answer;  // or the ID in the path
  Body body = kNoBody;                         // of a POST, PUT or DELETE; other methods have none
  std::string_view type = "application/json";  // of the answer
  bool is_file = false;                        // whether clients can ask if it has changed
  /// Gives the ETag of a file that is expensive to make; `answer` then gives that file or a newer one.
  /// Without it the content gives the ETag.
  std::string (*tag)(Service&) = nullptr;
};

/// A service of a process and its name. The paths of docs/SERVICE.md stand behind kSurface and the name; a
/// service without a name has them as they are.
struct Surface {
  std::string name;
  Service* service = nullptr;
};
inline constexpr std::string_view kSurface = "/surface/";

/// The surface that a request is for, whose prefix goes from its target; null for a request to all of them.
const Surface* take_surface(RequestHead& head, std::span<const Surface> surfaces);

/// Throws ApiError 404 for an unknown path or surface, and for a path that one surface alone answers if the
/// request is to all of them; 405 for a method that the path does not have. HEAD is GET without the
/// answer's body.
const Route& find_route(const RequestHead& head, std::span<const Surface> surfaces, bool has_surface);

/// The path if it is a route's, else "other": a label of metrics.
std::string_view known_path(std::string_view path);

/// Does not throw. Thread-safe.
Answer answer_request(const Route& route, Service& service, const RequestHead& head,
                      const std::string& body);
/// The answer for a process with named surfaces: health, metrics with a label, and a page, which needs no
/// token, of links if it `names_them`.
Answer answer_for_all(const Route& route, std::span<const Surface> surfaces, bool names_them);
Answer answer_rejection(const ApiError& error);

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
