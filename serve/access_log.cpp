#include "serve/access_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/throw_error.h"

namespace olrank {

AccessLog::AccessLog(const std::string& path) : path_(path) {
  path == "-" ? file_.reset(stdout) : open();
}

void AccessLog::open() {
  const int descriptor =
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
  if (descriptor < 0) throw IoError("open", path_, errno);
  file_.reset(::fdopen(descriptor, "a"));
  std::setvbuf(file_.get(), nullptr, _IOLBF, BUFSIZ);
}

void AccessLog::reopen() {
  try {
    open();
  } catch (const IoError& error) {
    log_warning("The access log stays in the file that it has: {}", error.what());
  }
}

namespace {

/// The members of a trace for a line; empty if the header is none that the standard allows.
std::string trace_members(std::string_view header) {
  constexpr std::size_t kLength = 55;  // version-trace-parent-flags: 2, 32, 16 and 2 digits
  if (header.size() < kLength ||
      (header.size() > kLength && (header.starts_with("00") || header[kLength] != '-')))
    return {};
  const auto digits = [&](std::size_t begin, std::size_t length,
                          std::string_view none) -> std::string_view {
    const std::string_view part = header.substr(begin, length);
    const bool is_hex = part.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return is_hex && part.find_first_not_of(none) != std::string_view::npos ? part : std::string_view();
  };
  const std::string_view trace = digits(3, 32, "0");
  const std::string_view parent = digits(36, 16, "0");
  const bool is_valid = !digits(0, 2, "f").empty() && !trace.empty() && !parent.empty() &&
                        !digits(53, 2, "").empty() && header[2] == '-' && header[35] == '-' &&
                        header[52] == '-';
  if (!is_valid) return {};
  return fmt::format(",\"trace_id\":\"{}\",\"parent_id\":\"{}\"", trace, parent);
}

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;

/// The sentence of a service's error.
std::string told(const std::string& body) {
  try {
    return parse_json(body).at("error").at("message").get<std::string>();
  } catch (const std::exception&) {
    return body.substr(0, 300);
  }
}

}  // namespace

/// A line that cannot be written is lost: answers matter more.
void AccessLog::add(std::string_view method, std::string_view path, int status, double seconds,
                    std::size_t bytes, std::string_view traceparent) {
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::string line = fmt::format(
      "{{\"time\":\"{:%Y-%m-%dT%H:%M:%S}.{:03}Z\",\"method\":\"{}\",\"path\":\"{}\",\"status\":{},"
      "\"seconds\":{:.6f},\"bytes\":{}{}}}\n",
      fmt::gmtime(std::chrono::system_clock::to_time_t(now)), now.time_since_epoch().count() % 1000, method,
      path, status, seconds, bytes, trace_members(traceparent));
  std::fwrite(line.data(), 1, line.size(), file_.get());
  if (file_.get() == stdout) std::fflush(stdout);
}

std::string read_token(const std::filesystem::path& file) {
  constexpr std::size_t kLongest = 4096;
  const auto refuse = [&](std::string_view sentence) {
    throw_error<InvalidArgument>("{}: {}", file.string(), sentence);
  };
  std::string token(kLongest + 2, '\0');
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  stream.read(token.data(), std::ssize(token));
  if (stream.bad() || !stream.is_open()) throw IoError("read", file.string(), errno);
  token.resize(stream.gcount());
  if (token.size() > kLongest + 1) refuse(fmt::format("The token file has more than {} bytes.", kLongest));
  if (token.ends_with('\n')) token.pop_back();
  if (token.ends_with('\r')) token.pop_back();
  if (token.find('\n') != std::string::npos)
    refuse("The token file has more than one line; write the token alone into it.");
  while (token.ends_with(' ')) token.pop_back();
  if (token.empty()) refuse("The token file is empty.");
  if (std::any_of(token.begin(), token.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }))
    refuse("The token has a control character, which no request can send.");
  return token;
}

HttpFile::HttpFile(std::string_view url, std::string path, std::string token, std::string authorities,
                   std::chrono::milliseconds timeout)
    : secure_(url.starts_with("https://")),
      path_(std::move(path)),
      token_(std::move(token)),
      authorities_(std::move(authorities)),
      timeout_(timeout) {
  std::string_view rest = url;
  const auto refuse = [&] {
    throw_error<InvalidArgument>("--follow '{}': Write http://HOST:PORT or https://HOST:PORT.", url);
  };
  if (!secure_ && !rest.starts_with("http://")) refuse();
  if (!secure_ && !authorities_.empty())
    throw_error<InvalidArgument>("--follow-ca requires a URL of https, not '{}'.", url);
  rest.remove_prefix(rest.find("//") + 2);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    path_ = std::string(rest.substr(slash)) + path_;
    rest = rest.substr(0, slash);
  }
  const std::size_t bracket = rest.rfind(']');
  const std::size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  host_ = rest.substr(0, colon);
  port_ = colon != std::string_view::npos ? rest.substr(colon + 1) : secure_ ? "443" : "80";
  if (host_.empty() || port_.empty() || path_.find_first_of("?# \t\r\n") != std::string::npos) refuse();
}

std::string HttpFile::url() const {
  return fmt::format("{}://{}:{}{}", secure_ ? "https" : "http", host_, port_, path_);
}

/// One request and its answer, step by step: the time limits of a stream hold for asynchronous calls only.
struct HttpFile::Exchange {
  net::io_context context{};
  http::request<http::empty_body> request{};
  http::response_parser<http::string_body> parser{};
  boost::system::error_code failed{};

  template <class Begin>
  void wait(beast::tcp_stream& line, std::chrono::milliseconds timeout, const Begin& begin) {
    if (failed) return;
    line.expires_after(timeout);
    begin([this](boost::system::error_code error, auto&&...) { failed = error; });
    context.restart();
    context.run();
  }
  template <class Stream>
  void run(Stream& stream, const HttpFile& file) {
    beast::tcp_stream& line = beast::get_lowest_layer(stream);
    beast::flat_buffer buffer;
    wait(line, file.timeout_, [&](auto done) { http::async_write(stream, request, done); });
    while (!failed && !parser.is_done()) {
      if (InterruptGuard::requested() != 0)
        throw_error<IoError>("{}: The process is about to end.", file.url());
      wait(line, file.timeout_, [&](auto done) { http::async_read_some(stream, buffer, parser, done); });
    }
  }
};

std::optional<std::string> HttpFile::fetch() {
  std::string host = host_;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  Exchange exchange;
  exchange.request = {http::verb::get, path_, 11};
  exchange.request.set(http::field::host, fmt::format("{}:{}", host_, port_));
  exchange.request.set(http::field::connection, "close");
  if (!token_.empty()) exchange.request.set(http::field::authorization, "Bearer " + token_);
  if (!tag_.empty()) exchange.request.set(http::field::if_none_match, tag_);
  exchange.parser.body_limit(kMostBytes);
  net::ip::tcp::resolver resolver(exchange.context);
  const auto places = resolver.resolve(host, port_, exchange.failed);
  const auto connect = [&](beast::tcp_stream& line) {
    exchange.wait(line, timeout_, [&](auto done) { line.async_connect(places, done); });
  };
  if (secure_) {
    net::ssl::context tls(net::ssl::context::tls_client);
    tls.set_verify_mode(net::ssl::verify_peer);
    boost::system::error_code unread;
    authorities_.empty() ? tls.set_default_verify_paths(unread)
                         : tls.load_verify_file(authorities_, unread);
    if (unread) throw_error<Error>("--follow-ca {}: {}.", authorities_, unread.message());
    net::ssl::stream<beast::tcp_stream> stream(exchange.context, tls);
    stream.set_verify_callback(net::ssl::host_name_verification(host));
    SSL_set_tlsext_host_name(stream.native_handle(), host.c_str());
    connect(stream.next_layer());
    exchange.wait(stream.next_layer(), timeout_,
                  [&](auto done) { stream.async_handshake(net::ssl::stream_base::client, done); });
    exchange.run(stream, *this);
  } else {
    beast::tcp_stream stream(exchange.context);
    connect(stream);
    exchange.run(stream, *this);
  }
  return taken(exchange);
}

std::optional<std::string> HttpFile::taken(Exchange& exchange) {
  if (exchange.failed) throw_error<IoError>("{} cannot be read: {}.", url(), exchange.failed.message());
  const auto& answer = exchange.parser.get();
  if (answer.result() == http::status::not_modified) return std::nullopt;
  if (answer.result() != http::status::ok) {
    const std::string refusal =
        fmt::format("{} answers {}: {}", url(), answer.result_int(), told(answer.body()));
    if (answer.result_int() < 500) throw Error(refusal);  // it would stay so
    throw IoError(refusal);
  }
  tag_ = std::string(answer[http::field::etag]);
  return std::move(exchange.parser.get().body());
}

}  // namespace olrank
