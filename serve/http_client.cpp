#include "serve/http_client.h"

#include <fmt/format.h>

#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "core/error.h"
#include "core/io/json.h"

namespace olrank {
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
    throw InvalidArgument(fmt::format("--follow '{}': Write http://HOST:PORT.", url));
  rest.remove_prefix(kScheme.size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t bracket = rest.rfind(']');
  const std::size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  host_ = rest.substr(0, colon);
  port_ = colon == std::string_view::npos ? "80" : rest.substr(colon + 1);
  if (host_.empty() || port_.empty() || rest.find('/') != std::string_view::npos)
    throw InvalidArgument(fmt::format("--follow '{}': Write http://HOST:PORT.", url));
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
  wait([&] { http::async_read(stream, buffer, parser, done); });
  if (failed) throw IoError(fmt::format("{} cannot be read: {}.", url(), failed.message()));
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
