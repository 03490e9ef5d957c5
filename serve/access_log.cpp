#include "serve/access_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <utility>

#include "core/io/json.h"
#include "core/runtime/interrupt.h"
#include "core/throw_error.h"

namespace olrank {

AccessLog::AccessLog(const std::string& path) {
  if (path == "-") {
    file_.reset(stdout);
    return;
  }
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) throw IoError("open", path, errno);
  file_.reset(::fdopen(descriptor, "a"));
  std::setvbuf(file_.get(), nullptr, _IOLBF, BUFSIZ);
}

/// A line that cannot be written is lost: answers matter more.
void AccessLog::add(std::string_view method, std::string_view path, int status, double seconds,
                    std::size_t bytes) {
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::string line = fmt::format(
      "{{\"time\":\"{:%Y-%m-%dT%H:%M:%S}.{:03}Z\",\"method\":\"{}\",\"path\":\"{}\",\"status\":{},"
      "\"seconds\":{:.6f},\"bytes\":{}}}\n",
      fmt::gmtime(std::chrono::system_clock::to_time_t(now)), now.time_since_epoch().count() % 1000, method,
      path, status, seconds, bytes);
  std::fwrite(line.data(), 1, line.size(), file_.get());
  if (file_.get() == stdout) std::fflush(stdout);
}

namespace {

constexpr std::size_t kLongest = 4096;

}  // namespace

std::string read_token(const std::filesystem::path& file) {
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

namespace {

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

HttpFile::HttpFile(std::string_view url, std::string path, std::string token,
                   std::chrono::milliseconds timeout)
    : path_(std::move(path)), token_(std::move(token)), timeout_(timeout) {
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = url;
  if (!rest.starts_with(kScheme))
    throw_error<InvalidArgument>("--follow '{}': Write http://HOST:PORT.", url);
  rest.remove_prefix(kScheme.size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t bracket = rest.rfind(']');
  const std::size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  host_ = rest.substr(0, colon);
  port_ = colon == std::string_view::npos ? "80" : rest.substr(colon + 1);
  if (host_.empty() || port_.empty() || rest.find('/') != std::string_view::npos)
    throw_error<InvalidArgument>("--follow '{}': Write http://HOST:PORT.", url);
}

std::string HttpFile::url() const {
  return fmt::format("http://{}:{}{}", host_, port_, path_);
}

std::optional<std::string> HttpFile::fetch() {
  std::string host = host_;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  net::io_context context;
  beast::tcp_stream stream(context);
  http::request<http::empty_body> request(http::verb::get, path_, 11);
  request.set(http::field::host, fmt::format("{}:{}", host_, port_));
  request.set(http::field::connection, "close");
  if (!token_.empty()) request.set(http::field::authorization, "Bearer " + token_);
  if (!tag_.empty()) request.set(http::field::if_none_match, tag_);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMostBytes);
  boost::system::error_code failed;
  // The time limits of a stream hold for asynchronous calls only.
  net::ip::tcp::resolver resolver(context);
  const auto places = resolver.resolve(host, port_, failed);
  const auto done = [&failed](boost::system::error_code error, auto&&...) { failed = error; };
  const auto wait = [&](const auto& begin) {
    if (failed) return;
    stream.expires_after(timeout_);
    begin();
    context.restart();
    context.run();
  };
  wait([&] { stream.async_connect(places, done); });
  wait([&] { http::async_write(stream, request, done); });
  while (!failed && !parser.is_done()) {
    if (InterruptGuard::requested() != 0) throw_error<IoError>("{}: The process is about to end.", url());
    wait([&] { http::async_read_some(stream, buffer, parser, done); });
  }
  if (failed) throw_error<IoError>("{} cannot be read: {}.", url(), failed.message());
  const auto& answer = parser.get();
  if (answer.result() == http::status::not_modified) return std::nullopt;
  if (answer.result() != http::status::ok) {
    const std::string refusal =
        fmt::format("{} answers {}: {}", url(), answer.result_int(), told(answer.body()));
    if (answer.result_int() < 500) throw Error(refusal);  // it would stay so
    throw IoError(refusal);
  }
  tag_ = std::string(answer[http::field::etag]);
  return std::move(parser.get().body());
}

}  // namespace olrank
