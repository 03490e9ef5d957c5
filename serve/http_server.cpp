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
constexpr std::size_t kRequestsTold = 1'000'000;

/// What a thread knows of the request it serves.
struct Exchange {
  Connection* connection = nullptr;
  bool body_read = false;  // the next request begins where this one's bytes end
};
thread_local Exchange exchange;
thread_local bool over_the_limit = false;  // of connections: this one is only told so

/// A thread a connection, made when it is needed, and no queue. The library's own pool has one, and is also
/// inside LibTorch, in another version, under the same name.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t limit) : limit_(limit) {}

  // Newer versions of the library want to know whether it was taken.
  using Taken = decltype(std::declval<httplib::TaskQueue&>().enqueue(std::function<void()>()));

  Taken enqueue(std::function<void()> connection) override {
    bool taken = false;
    {
      const std::lock_guard lock(mutex_);
      if (busy_ < limit_) {
        taken = true;
        ++busy_;
        waiting_.push_back(std::move(connection));
        if (busy_ > threads_.size()) threads_.emplace_back([this] { work(); });
      }
    }
    if (taken) {
      wake_.notify_one();
    } else {
      over_the_limit = true;
      connection();
      over_the_limit = false;
    }
    return static_cast<Taken>(true);
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return over_ || !waiting_.empty(); });
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
  bool over_ = false;
};

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.rfind("127.", 0) == 0;
}

/// Takes the same time wherever the texts differ.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

std::string sentence_of(int status) {
  switch (status) {
    case 404:
      return "There is nothing at this path.";
    case 408:
      return "The request did not come in time.";
    case 413:
      return "The body is too long.";
    case 414:
      return "The path is too long.";
    case 503:
      return "Too many connections are open; try again later.";
    default:
      return status < 500 ? "This is no request that HTTP allows." : "The request could not be served.";
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
    // What its answers say of keeping a connection; the loop below is ours.
    set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(settings_.idle).count());
    set_keep_alive_max_count(kRequestsTold);
    // Not the library's default, which lets two services share a port without knowing.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return check(request, response) ? HandlerResponse::Unhandled : HandlerResponse::Handled;
    });
    set_error_handler([](const httplib::Request&, httplib::Response& response) { explain(response); });
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
      throw IoError(fmt::format("Cannot listen on {}:{}; is another service there?", settings_.address,
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
      // A GET's body is left where it is, and so is what follows it.
      exchange.body_read = request.method == "POST" || !request.has_header("Content-Length");
      try {
        response.set_content(answer(request.body), type);
        response.status = 200;
      } catch (const ApiError& error) {
        refuse(response, error);
      } catch (const std::exception& error) {
        log_warning("{}: {}", request.path, error.what());
        refuse(response, ApiError(500, "", error.what()));
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      service_.counters().count_request(route_of(request.path), response.status, seconds.count());
    };
  }

  static void refuse(httplib::Response& response, const ApiError& error) {
    response.status = error.status();
    response.set_content(error.json(), "application/json");
  }

  /// Gives a body to what the library refused by itself.
  static void explain(httplib::Response& response) {
    if (!response.body.empty()) return;
    if (exchange.connection != nullptr) {
      if (exchange.connection->timed_out()) response.status = 408;
      if (exchange.connection->too_long()) response.status = 413;
    }
    refuse(response, ApiError(response.status, "", sentence_of(response.status)));
    response.set_header("Connection", "close");
  }

  /// Before the body is read.
  bool check(const httplib::Request& request, httplib::Response& response) {
    try {
      check_token(request);
      check_form(request);
      return true;
    } catch (const ApiError& error) {
      refuse(response, error);
      response.set_header("Connection", "close");
      service_.counters().count_request(route_of(request.path), error.status(), 0.0);
      return false;
    }
  }

  void check_token(const httplib::Request& request) const {
    if (settings_.token.empty() || request.path == "/healthz" || request.path == "/readyz") return;
    const std::string said = request.get_header_value("Authorization");
    constexpr std::string_view kScheme = "Bearer ";
    if (said.rfind(kScheme, 0) == 0 &&
        same_secret(std::string_view(said).substr(kScheme.size()), settings_.token))
      return;
    throw ApiError(401, "Authorization", "This needs the service's token: 'Authorization: Bearer TOKEN'.");
  }

  void check_form(const httplib::Request& request) const {
    if (request.has_header("Content-Encoding"))
      throw ApiError(415, "Content-Encoding", "Send the body as it is, without compression.");
    if (request.method != "POST") return;
    if (request.has_header("Transfer-Encoding")) {
      if (request.has_header("Content-Length"))
        throw ApiError(400, "Content-Length", "A body has either a length or chunks.");
      return;  // the connection counts
    }
    const std::string said = request.get_header_value("Content-Length");
    std::uint64_t length = 0;
    const auto [rest, error] = std::from_chars(said.data(), said.data() + said.size(), length);
    if (request.get_header_value_count("Content-Length") != 1 || error != std::errc{} ||
        rest != said.data() + said.size()) {
      throw ApiError(411, "Content-Length", "Say how long the body is.");
    }
    if (length > settings_.body_bytes) {
      throw ApiError(
          413, "Content-Length",
          fmt::format("The body has {} bytes, and {} are allowed.", length, settings_.body_bytes));
    }
  }

  /// The library's own loop has no time for a whole request and no limit of connections.
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket);
    if (over_the_limit) {
      turn_away(connection);
      return false;
    }
    const auto stopping = [this] { return svr_sock_ == INVALID_SOCKET; };
    bool served = true;
    while (served && connection.wait_for_request(settings_.idle, stopping)) {
      connection.begin_request(settings_.request, settings_.body_bytes + kHeaderBytes);
      exchange = {&connection, false};
      bool closed = false;
      served = process_request(connection, stopping(), closed, [](httplib::Request& request) {
        // Whatever a client calls it: forms are parsed by the library and have a smaller limit.
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

  static void turn_away(Connection& connection) {
    const std::string body = ApiError(503, "", sentence_of(503)).json();
    const std::string answer = fmt::format(
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
        "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        body.size(), body);
    // Only what the system takes at once: nobody may hold up the thread that accepts.
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
      fmt::format("Anyone who reaches {} could rank and teach: give a token file, or listen on 127.0.0.1.",
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
