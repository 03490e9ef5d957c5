#include "serve/http_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <list>
#include <optional>
#include <utility>

#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "serve/access_log.h"

namespace olrank {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;
using SystemError = boost::system::error_code;

constexpr std::size_t kHeadBytes = std::size_t{1} << 16;
constexpr std::size_t kFramingBytes = std::size_t{1} << 14;  // of a chunk's header, or all trailers
constexpr std::size_t kMostNewcomers = 256;
constexpr std::size_t kWaitingThreads = 32;
constexpr std::chrono::seconds kLinger{2};
constexpr std::chrono::seconds kWindDown{1};
constexpr std::size_t kLingerBytes = std::size_t{64} << 20;
constexpr std::chrono::milliseconds kAcceptPause{100};

/// Leaves most descriptors to admitted connections and to files.
std::size_t newcomer_limit() {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return kMostNewcomers;
  return std::clamp<std::size_t>(descriptors.rlim_cur / 4, 1, kMostNewcomers);
}

}  // namespace

class HttpServer::Server {
 public:
  Server(std::vector<Surface> surfaces, const HttpSettings& settings, Listener& listener)
      : surfaces_(std::move(surfaces)),
        settings_(settings),
        acceptor_(context_),
        pause_(context_),
        computing_(std::max(2, available_threads())),
        waiting_(std::min(kWaitingThreads, settings.connections)) {
    const bool v6 = listener.is_v6();
    if (!settings.access_log.empty()) access_log_.emplace(settings.access_log);
    if (access_log_ && access_log_->is_file()) await_rotation();
    acceptor_.assign(v6 ? net::ip::tcp::v6() : net::ip::tcp::v4(), listener.release());
  }

  void run() {
    accept();
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception& error) {
        log_warning("A connection failed: {}", error.what());  // and is closed
      }
    }
  }
  void stop();

  const HttpSettings& settings() const { return settings_; }
  bool stopping() const { return stopping_; }

  using Place = std::list<Session*>::iterator;
  /// A new connection; closes the oldest newcomer if there are too many.
  Place enter(Session& session);
  /// Makes a newcomer one of the `--connections`, if there is room.
  bool admit(Place place) {
    if (admitted_.size() >= settings_.connections) return false;
    admitted_.splice(admitted_.end(), newcomers_, place);
    return true;
  }
  void leave(Place place, bool admitted) { (admitted ? admitted_ : newcomers_).erase(place); }

  const std::vector<Surface>& surfaces() const { return surfaces_; }
  bool rotates() const { return moved_.has_value(); }
  void work(Route::Cost cost, std::function<void()> job) {
    (cost == Route::kComputing ? computing_ : waiting_).add(std::move(job));
  }
  void count(const Surface* surface, const RequestHead& head, const Answer& answer, Clock::duration taken) {
    const double seconds = std::chrono::duration<double>(taken).count();
    const std::string_view path = known_path(head.path());
    // The figures are those of surfaces: a request to none of several has no place among them.
    if (surface == nullptr && surfaces_.front().name.empty()) surface = &surfaces_.front();
    if (surface != nullptr) surface->service->counters().count_request(path, answer.status, seconds);
    if (!access_log_) return;
    static constexpr std::string_view kMethods[] = {"GET", "POST", "HEAD", "PUT", "DELETE"};
    const bool is_known =
        std::find(std::begin(kMethods), std::end(kMethods), head.method) != std::end(kMethods);
    access_log_->add(is_known ? head.method : "other",
                     surface != nullptr && !surface->name.empty() && path.starts_with('/')
                         ? fmt::format("{}{}{}", kSurface, surface->name, path)
                         : std::string(path),
                     answer.status, seconds, answer.body.size(),
                     head.count("traceparent") == 1 ? head.value("traceparent") : "");
  }

 private:
  void accept();
  /// SIGHUP says that the access log was moved.
  void await_rotation() {
    if (!moved_) moved_.emplace(context_, SIGHUP);
    moved_->async_wait([this](SystemError error, int) {
      if (error || stopping_) return;
      access_log_->reopen();
      await_rotation();
    });
  }

  std::vector<Surface> surfaces_;
  HttpSettings settings_;
  std::optional<AccessLog> access_log_;
  // Newcomers are connections without an admitted request, oldest first. A client that fills this list with
  // silent connections loses its own.
  const std::size_t newcomer_limit_ = newcomer_limit();
  std::list<Session*> newcomers_;
  std::list<Session*> admitted_;
  bool stopping_ = false;
  net::io_context context_{1};
  net::ip::tcp::acceptor acceptor_;
  net::steady_timer pause_;
  std::optional<net::signal_set> moved_;
  // Last, because their jobs use the rest.
  WorkerThreads computing_;
  WorkerThreads waiting_;
};

/// One connection: reads a request, has it answered, and starts again. All of it runs on the reading
/// thread; a pending operation or job keeps the session alive.
class HttpServer::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Server& server, net::ip::tcp::socket socket)
      : server_(server), socket_(std::move(socket)), timer_(socket_.get_executor()) {
    SystemError ignored;
    socket_.set_option(net::ip::tcp::no_delay(true), ignored);
    place_ = server_.enter(*this);
  }
  ~Session() {
    if (phase_ != kClosed) server_.leave(place_, admitted_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Waits for the next request; some of it may have arrived with the previous one.
  void begin() {
    parser_.emplace();
    parser_->header_limit(kHeadBytes);
    parser_->body_limit(boost::none);  // set once the head is read
    parser_->on_chunk_header(refuse_controls_);
    scanner_ = {};
    scanned_ = 0;
    head_ = {};
    surface_ = nullptr;
    route_ = nullptr;
    if (buffer_.size() > 0) {
      start_request(buffer_.size());
      advance();
    } else if (server_.stopping()) {
      close();
    } else {
      phase_ = kIdle;
      expire_after(server_.settings().idle);
      read();
    }
  }

  void close() {
    if (phase_ == kClosed) return;
    SystemError ignored;
    phase_ = kClosed;
    server_.leave(place_, admitted_);
    timer_.cancel();
    socket_.close(ignored);
  }

  /// Closes a connection that has not begun a request and soon ends one without a complete head.
  void wind_down() {
    SystemError failed;
    if (phase_ == kIdle && (socket_.available(failed) == 0 || failed)) return close();
    if (phase_ == kIdle || (phase_ == kReceiving && route_ == nullptr)) expire_after(kWindDown);
  }

 private:
  enum Phase { kIdle, kReceiving, kWorking, kSending, kLingering, kClosed };
  using Parser = http::request_parser<http::string_body>;

  void expire_after(Clock::duration time) {
    timer_.expires_after(time);
    timer_.async_wait([self = shared_from_this()](SystemError error) {
      if (!error && self->timer_.expiry() <= Clock::now()) self->expire();
    });
  }
  void expire() {
    if (phase_ == kWorking) return;  // the request was complete just in time
    if (phase_ != kReceiving) return close();
    SystemError ignored;
    timed_out_ = true;
    socket_.cancel(ignored);  // read_more() then answers
  }

  void read() {
    const std::size_t most = route_ == nullptr ? std::size_t{1} << 12 : std::size_t{1} << 16;
    socket_.async_read_some(
        buffer_.prepare(most),
        [self = shared_from_this()](SystemError error, std::size_t size) { self->read_more(error, size); });
  }
  void read_more(SystemError error, std::size_t size) {
    if (phase_ == kClosed) return;
    if (timed_out_) return reject(ApiError(408, "", "The request took too long to arrive."));
    if (error == net::error::eof && phase_ == kReceiving)
      return reject(ApiError(400, "", "The request ends early."));
    if (error) return close();
    buffer_.commit(size);
    if (phase_ == kIdle) {
      start_request(size);
    } else {
      received_ += size;
    }
    advance();
  }
  void start_request(std::size_t size) {
    phase_ = kReceiving;
    received_ = size;
    expire_after(server_.settings().request);
  }

  /// Uses what has arrived, then waits for more or has the request answered.
  void advance() {
    try {
      if (route_ == nullptr && !read_head()) return read();
      if (!read_body()) return read();
    } catch (const ApiError& error) {
      return reject(error);
    }
    timer_.cancel();
    start_work();
  }

  std::string_view arrived() const {
    const auto bytes = buffer_.cdata();
    return {static_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// Whether the head is complete and the request may be served.
  bool read_head() {
    const HeadScanner::Result result = scanner_.scan(arrived().substr(scanned_));
    scanned_ = arrived().size();
    if (result == HeadScanner::kMalformed) throw ApiError(400, "", "Malformed HTTP request.");
    if (scanner_.size() > kHeadBytes || (result == HeadScanner::kIncomplete && scanned_ >= kHeadBytes)) {
      const std::size_t first_line = arrived().find('\r');  // perhaps without an end
      if (first_line > kHeadBytes / 2) throw ApiError(414, "", "The URL is too long.");
      throw ApiError(431, "", fmt::format("The header is too large; the limit is {} bytes.", kHeadBytes));
    }
    if (result == HeadScanner::kIncomplete) return false;
    parse(scanner_.size());
    if (!parser_->is_header_done()) throw ApiError(400, "", "Malformed HTTP request.");
    take_head();
    check_framing(head_);
    check_access(head_, server_.settings());
    const Route& route = find_route(head_, server_.surfaces(), surface_ != nullptr);
    check_body(head_, server_.settings(), route.body == Route::kNeedsBody);
    admit();
    parser_->body_limit(server_.settings().body_bytes);
    route_ = &route;
    if (head_.expects_continue() && buffer_.size() == 0 && !parser_->is_done()) send_continue();
    return true;
  }
  void take_head() {
    const auto& message = parser_->get();
    head_.method = std::string(message.method_string());
    head_.target = std::string(message.target());
    surface_ = take_surface(head_, server_.surfaces());
    head_.http11 = message.version() >= 11;
    for (const auto& field : message)
      head_.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  /// Public requests use none of the admitted connections: health checks have to work when all are taken,
  /// and what needs no token must not take them.
  void admit() {
    if (admitted_ || is_public(head_)) return;
    if (!server_.admit(place_)) throw ApiError(503, "", "Too many open connections; try again later.");
    admitted_ = true;
  }
  void send_continue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    SystemError ignored;  // the client then waits no longer than it wants to
    socket_.non_blocking(true, ignored);
    socket_.write_some(net::buffer(kContinue), ignored);
  }

  bool read_body() {
    while (!parser_->is_done() && buffer_.size() > 0) {
      if (parse(buffer_.size()) > 0) continue;
      // The parser waits for the end of what is not body: a chunk's header or trailers.
      if (has_bare_line_feed(arrived()))
        throw ApiError(400, "", "Lines of a chunked body must end in CR LF.");
      if (buffer_.size() >= kFramingBytes)
        throw ApiError(400, "", "A chunk's header or trailers are too long.");
      break;
    }
    if (parser_->is_done()) return true;
    if (received_ > server_.settings().body_bytes + kHeadBytes)
      throw ApiError(413, "body", "The request is too large.");
    return false;
  }
  /// Has the library parse up to `size` bytes; returns how many it used.
  std::size_t parse(std::size_t size) {
    SystemError error;
    const std::size_t used = parser_->put(net::const_buffer(buffer_.cdata().data(), size), error);
    buffer_.consume(used);
    if (error == http::error::body_limit) {
      throw ApiError(413, "body",
                     fmt::format("The body exceeds the limit of {} bytes.", server_.settings().body_bytes));
    }
    if (error && error != http::error::need_more)
      throw ApiError(400, "", fmt::format("Malformed HTTP request: {}.", error.message()));
    return used;
  }

  void start_work() {
    phase_ = kWorking;
    begin_ = Clock::now();
    if (route_->cost == Route::kNothing) return send(answered(""), false);
    const auto busy = net::make_work_guard(socket_.get_executor());
    server_.work(route_->cost, [self = shared_from_this(), busy]() mutable {
      Answer answer = self->answered(self->parser_->get().body());
      // The session goes along, so that it ends on the reading thread.
      net::post(busy.get_executor(), [self = std::move(self), answer = std::move(answer)]() mutable {
        self->send(std::move(answer), false);
      });
    });
  }

  Answer answered(const std::string& body) const {
    if (surface_ != nullptr) return answer_request(*route_, *surface_->service, head_, body);
    return answer_for_all(*route_, server_.surfaces(), server_.settings().token.empty());
  }

  void reject(const ApiError& error) {
    timer_.cancel();
    begin_ = Clock::now();
    // It is unknown where the next request would begin.
    send(answer_rejection(error), true);
  }

  void send(Answer answer, bool last) {
    if (phase_ == kClosed) return;
    server_.count(surface_, head_, answer, Clock::now() - begin_);
    closing_ = last || server_.stopping() || !parser_->is_header_done() || !parser_->keep_alive();
    response_.emplace(static_cast<http::status>(answer.status), 11);
    response_->set(http::field::content_type, answer.type);
    if (!answer.policy.empty()) {
      response_->set("Content-Security-Policy", answer.policy);
      response_->set("X-Content-Type-Options", "nosniff");
      response_->set("Referrer-Policy", "no-referrer");
      response_->set(http::field::cache_control, "no-cache");
    }
    if (!answer.tag.empty()) response_->set(http::field::etag, answer.tag);
    if (!answer.allow.empty()) response_->set(http::field::allow, answer.allow);
    if (answer.status == 401) response_->set(http::field::www_authenticate, "Bearer");
    if (answer.retry_after > 0)
      response_->set(http::field::retry_after, fmt::format("{}", answer.retry_after));
    if (closing_) {
      response_->set(http::field::connection, "close");
    } else {
      if (!head_.http11) response_->set(http::field::connection, "keep-alive");
      const auto idle = std::chrono::ceil<std::chrono::seconds>(server_.settings().idle).count();
      response_->set(http::field::keep_alive, fmt::format("timeout={}", idle));
    }
    // The length that a 304 names is that of the answer that it stands for.
    if (answer.status != 304) response_->content_length(answer.body.size());
    if (head_.method != "HEAD") response_->body() = std::move(answer.body);
    serializer_.emplace(*response_);
    phase_ = kSending;
    write();
  }
  /// A client may take long to receive a large answer, as long as it receives something.
  void write() {
    expire_after(server_.settings().request);
    http::async_write_some(socket_, *serializer_,
                           [self = shared_from_this()](SystemError error, std::size_t) {
                             if (self->phase_ == kClosed) return;
                             if (error) return self->close();
                             if (!self->serializer_->is_done()) return self->write();
                             self->serializer_.reset();
                             self->response_.reset();
                             self->closing_ ? self->linger() : self->begin();
                           });
  }

  /// Ends our side and drains the client's, so that a reset cannot destroy the last answer.
  void linger() {
    SystemError failed;
    phase_ = kLingering;
    parser_.reset();
    buffer_.clear();
    received_ = 0;
    socket_.shutdown(net::ip::tcp::socket::shutdown_send, failed);
    if (failed) return close();
    expire_after(kLinger);
    drain();
  }
  void drain() {
    socket_.async_read_some(buffer_.prepare(std::size_t{1} << 16),
                            [self = shared_from_this()](SystemError error, std::size_t size) {
                              self->received_ += size;
                              if (error || self->received_ > kLingerBytes) return self->close();
                              self->drain();
                            });
  }

  // A quoted LF would be the line's end for other parsers.
  std::function<void(std::uint64_t, boost::beast::string_view, SystemError&)> refuse_controls_ =
      [](std::uint64_t, boost::beast::string_view extensions, SystemError& error) {
        if (std::any_of(extensions.begin(), extensions.end(),
                        [](char byte) { return static_cast<unsigned char>(byte) < ' ' && byte != '\t'; }))
          error = http::error::bad_chunk_extension;
      };

  Server& server_;
  net::ip::tcp::socket socket_;
  net::steady_timer timer_;
  Server::Place place_;
  bool admitted_ = false;
  Phase phase_ = kIdle;

  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  HeadScanner scanner_;
  std::size_t scanned_ = 0;
  std::size_t received_ = 0;  // of this request
  bool timed_out_ = false;
  RequestHead head_;
  const Surface* surface_ =
      nullptr;  // both known once the head is read; null for a request to all surfaces
  const Route* route_ = nullptr;
  Clock::time_point begin_;

  bool closing_ = false;  // after the answer
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
};

HttpServer::Server::Place HttpServer::Server::enter(Session& session) {
  if (newcomers_.size() >= newcomer_limit_) newcomers_.front()->close();
  return newcomers_.insert(newcomers_.end(), &session);
}

void HttpServer::Server::accept() {
  acceptor_.async_accept([this](SystemError error, net::ip::tcp::socket socket) {
    if (stopping_) return;
    if (!error) {
      accept();
      return std::make_shared<Session>(*this, std::move(socket))->begin();
    }
    if (error == net::error::bad_descriptor || error == net::error::invalid_argument) {
      log_warning("The service cannot accept connections: {}.", error.message());
      return stop();
    }
    if (error == net::error::connection_aborted) return accept();
    if (error == net::error::no_descriptors && !newcomers_.empty()) {
      newcomers_.front()->close();
      return accept();
    }
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](SystemError) {
      if (!stopping_) accept();
    });
  });
}

void HttpServer::Server::stop() {
  net::post(context_, [this] {
    SystemError ignored;
    stopping_ = true;
    acceptor_.close(ignored);
    pause_.cancel();
    if (moved_) moved_->cancel();
    for (std::list<Session*>* list : {&newcomers_, &admitted_}) {
      for (auto session = list->begin(); session != list->end();) (*session++)->wind_down();
    }
  });
}

HttpServer::HttpServer(std::vector<Surface> surfaces, const HttpSettings& settings, Listener& listener)
    : server_(std::make_unique<Server>(std::move(surfaces), settings, listener)) {}

HttpServer::~HttpServer() {
  const bool rotates = server_->rotates();
  server_.reset();  // gives SIGHUP its default action
  if (rotates) std::signal(SIGHUP, SIG_IGN);
}

void HttpServer::run() {
  server_->run();
}

void HttpServer::stop() {
  server_->stop();
}

}  // namespace olrank
