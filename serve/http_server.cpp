#include "serve/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/runtime/log.h"
#include "serve/api_error.h"
#include "serve/connection.h"

namespace olrank {
namespace {

constexpr std::size_t kHeaderBytes = std::size_t{1} << 16;
constexpr int kBacklog = 128;
constexpr std::size_t kKeepAliveRequests = 1'000'000;

/// The request that the current thread serves.
struct Exchange {
  Connection* connection = nullptr;
  bool body_read = false;  // the socket's next byte starts the next request
};
thread_local Exchange exchange;
thread_local bool over_connection_limit = false;  // the current connection only gets a 503

/// One thread per connection, started on demand, without a queue. The library's own pool queues, and
/// LibTorch exports another version of it under the same name.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t limit) : limit_(limit) {}

  // Newer versions of the library expect a bool, older ones nothing.
  using Result = decltype(std::declval<httplib::TaskQueue&>().enqueue(std::function<void()>()));

  Result enqueue(std::function<void()> connection) override {
    {
      const std::lock_guard lock(mutex_);
      if (busy_ < limit_) {
        ++busy_;
        waiting_.push_back(std::move(connection));
        if (busy_ > threads_.size()) threads_.emplace_back([this] { work(); });
        wake_.notify_one();
        return static_cast<Result>(true);
      }
    }
    over_connection_limit = true;
    connection();
    over_connection_limit = false;
    return static_cast<Result>(true);
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      shut_down_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return shut_down_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::function<void()> connection = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      connection();
      lock.lock();
      --busy_;
    }
  }

  std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t busy_ = 0;
  bool shut_down_ = false;
};

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.rfind("127.", 0) == 0;
}

/// Constant-time comparison.
bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

std::string default_message(int status) {
  switch (status) {
    case 404:
      return "Unknown path or method.";
    case 408:
      return "The request took too long to arrive.";
    case 413:
      return "The request is too large.";
    case 414:
      return "The URL is too long.";
    case 503:
      return "Too many open connections; try again later.";
    default:
      return status < 500 ? "Malformed HTTP request." : "Internal error.";
  }
}

std::string_view route_of(const std::string& path) {
  static constexpr std::string_view kRoutes[] = {"/v1/rank",       "/v1/feedback", "/v1/model", "/v1/stats",
                                                 "/v1/checkpoint", "/healthz",     "/readyz",   "/metrics"};
  const auto found = std::find(std::begin(kRoutes), std::end(kRoutes), path);
  return found != std::end(kRoutes) ? *found : "other";
}

}  // namespace

class HttpServer::Server final : public httplib::Server {
 public:
  Server(Service& service, const HttpSettings& settings) : service_(service), settings_(settings) {
    new_task_queue = [this] { return new ConnectionThreads(settings_.connections); };
    set_payload_max_length(settings_.body_bytes);
    // These only fill the Keep-Alive header; process_and_close_socket() is our own loop.
    set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(settings_.idle).count());
    set_keep_alive_max_count(kKeepAliveRequests);
    // The library's default (SO_REUSEPORT) lets two services share a port unnoticed.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return check(request, response) ? HandlerResponse::Unhandled : HandlerResponse::Handled;
    });
    set_error_handler(
        [](const httplib::Request&, httplib::Response& response) { fill_error_body(response); });
    declare_routes();
    bind();
  }

  ~Server() override {
    if (svr_sock_ != INVALID_SOCKET) ::close(svr_sock_);
  }

  int port() const { return port_; }

 private:
  using Answer = std::function<std::string(const std::string& body)>;

  void bind() {
    require_safe_address(settings_);
    port_ = settings_.port;
    const bool bound = port_ == 0 ? (port_ = bind_to_any_port(settings_.address)) > 0
                                  : bind_to_port(settings_.address, port_);
    if (!bound) {
      throw IoError(fmt::format("Cannot listen on {}:{}. Is the port already in use?", settings_.address,
                                settings_.port));
    }
    ::listen(svr_sock_, kBacklog);
  }

  void declare_routes() {
    Post("/v1/rank",
         handler("application/json", [this](const std::string& body) { return service_.rank(body); }));
    Post("/v1/feedback",
         handler("application/json", [this](const std::string& body) { return service_.feedback(body); }));
    Post("/v1/checkpoint",
         handler("application/json", [this](const std::string&) { return service_.checkpoint(); }));
    Get("/v1/stats", handler("application/json", [this](const std::string&) { return service_.stats(); }));
    Get("/readyz", handler("application/json", [this](const std::string&) { return service_.ready(); }));
    Get("/healthz", handler("application/json", [](const std::string&) { return "{\"alive\":true}\n"; }));
    Get("/v1/model",
        handler("application/octet-stream", [this](const std::string&) { return service_.model(); }));
    Get("/metrics",
        handler("text/plain; version=0.0.4", [this](const std::string&) { return service_.metrics(); }));
  }

  Handler handler(const char* type, Answer answer) {
    return [this, type, answer = std::move(answer)](const httplib::Request& request,
                                                    httplib::Response& response) {
      const auto begin = std::chrono::steady_clock::now();
      // A GET's body stays unread on the socket, so the connection cannot be reused.
      exchange.body_read = request.method == "POST" || !request.has_header("Content-Length");
      try {
        response.set_content(answer(request.body), type);
        response.status = 200;
      } catch (const ApiError& error) {
        reject(response, error);
      } catch (const std::exception& error) {
        log_warning("{}: {}", request.path, error.what());
        reject(response, ApiError(500, "", error.what()));
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      service_.counters().count_request(route_of(request.path), response.status, seconds.count());
    };
  }

  static void reject(httplib::Response& response, const ApiError& error) {
    response.status = error.status();
    response.set_content(error.json(), "application/json");
  }

  /// Adds our error body to requests that the library rejected.
  static void fill_error_body(httplib::Response& response) {
    if (!response.body.empty()) return;
    if (exchange.connection != nullptr) {
      if (exchange.connection->timed_out()) response.status = 408;
      if (exchange.connection->too_long()) response.status = 413;
    }
    reject(response, ApiError(response.status, "", default_message(response.status)));
    response.set_header("Connection", "close");
  }

  /// Runs before the body is read.
  bool check(const httplib::Request& request, httplib::Response& response) {
    try {
      check_token(request);
      check_headers(request);
      return true;
    } catch (const ApiError& error) {
      reject(response, error);
      response.set_header("Connection", "close");
      service_.counters().count_request(route_of(request.path), error.status(), 0.0);
      return false;
    }
  }

  void check_token(const httplib::Request& request) const {
    if (settings_.token.empty() || request.path == "/healthz" || request.path == "/readyz") return;
    const std::string header = request.get_header_value("Authorization");
    constexpr std::string_view kScheme = "Bearer ";
    if (header.rfind(kScheme, 0) == 0 &&
        equal_secrets(std::string_view(header).substr(kScheme.size()), settings_.token))
      return;
    throw ApiError(401, "Authorization",
                   "A valid bearer token is required: 'Authorization: Bearer TOKEN'.");
  }

  void check_headers(const httplib::Request& request) const {
    if (request.has_header("Content-Encoding"))
      throw ApiError(415, "Content-Encoding", "Compressed bodies are not supported.");
    if (request.method != "POST") return;
    if (request.has_header("Transfer-Encoding")) {
      if (request.has_header("Content-Length"))
        throw ApiError(400, "Content-Length", "Content-Length and Transfer-Encoding exclude each other.");
      return;  // Connection enforces the limit
    }
    const std::string header = request.get_header_value("Content-Length");
    std::uint64_t length = 0;
    const auto [rest, error] = std::from_chars(header.data(), header.data() + header.size(), length);
    if (request.get_header_value_count("Content-Length") != 1 || error != std::errc{} ||
        rest != header.data() + header.size()) {
      throw ApiError(411, "Content-Length", "Content-Length is required.");
    }
    if (length > settings_.body_bytes) {
      throw ApiError(413, "Content-Length",
                     fmt::format("The body has {} bytes; the limit is {}.", length, settings_.body_bytes));
    }
  }

  /// Replaces the library's loop, which has no deadline for a whole request and no connection limit.
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket);
    if (over_connection_limit) {
      reject_connection(connection);
      return false;
    }
    const auto stopping = [this] { return svr_sock_ == INVALID_SOCKET; };
    bool served = true;
    while (served && connection.wait_for_request(settings_.idle, stopping)) {
      connection.begin_request(settings_.request, settings_.body_bytes + kHeaderBytes);
      exchange = {&connection, false};
      bool closed = false;
      served = process_request(connection, stopping(), closed, [](httplib::Request& request) {
        // Override the client's type: the library parses forms itself, with a lower size limit.
        if (request.method != "POST") return;
        request.headers.erase("Content-Type");
        request.set_header("Content-Type", "application/json");
      });
      if (closed || !exchange.body_read) break;
    }
    exchange.connection = nullptr;
    connection.linger();
    return served;
  }

  static void reject_connection(Connection& connection) {
    const std::string body = ApiError(503, "", default_message(503)).json();
    const std::string answer = fmt::format(
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
        "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        body.size(), body);
    // Non-blocking: no client may stall the accepting thread.
    ::send(connection.socket(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::shutdown(connection.socket(), SHUT_WR);
  }

  Service& service_;
  HttpSettings settings_;
  int port_ = 0;
};

void require_safe_address(const HttpSettings& settings) {
  if (is_loopback(settings.address) || !settings.token.empty()) return;
  throw InvalidArgument(
      fmt::format("--address {} is open to other machines and requires --token-file; or use 127.0.0.1.",
                  settings.address));
}

HttpServer::HttpServer(Service& service, const HttpSettings& settings)
    : server_(std::make_unique<Server>(service, settings)) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return server_->port();
}

void HttpServer::run() {
  server_->listen_after_bind();
  ended_ = true;
}

void HttpServer::stop() {
  while (!server_->is_running() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  server_->stop();
}

}  // namespace olrank
