#include "serve/request_head.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

#include "serve/api_error.h"

namespace olrank {
namespace {

constexpr std::size_t kTargetBytes = 8192;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Names in HTTP have no case.
bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char left, char right) { return lower(left) == lower(right); });
}

bool starts_with_name(std::string_view text, std::string_view name) {
  return same_name(text.substr(0, name.size()), name);
}

/// Decimal digits and nothing else.
std::optional<std::size_t> parse_size(std::string_view digits) {
  std::size_t value = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range && rest == digits.data() + digits.size())
    return static_cast<std::size_t>(-1);
  if (error != std::errc{} || rest != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// Constant-time comparison.
bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

/// Whether `host`, with or without a port, is a loopback number or localhost. A name is foreign even if it
/// resolves to loopback: DNS rebinding makes names do so.
bool is_local_host(std::string_view host) {
  if (host.empty()) return false;
  std::string_view name = host.substr(0, host.find(':'));
  std::string_view port = host.substr(name.size());
  const bool bracketed = host.front() == '[';
  if (bracketed) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return false;
    name = host.substr(1, end - 1);
    port = host.substr(end + 1);
  }
  if (!port.empty() && (port.front() != ':' || (port.size() > 1 && !parse_size(port.substr(1)))))
    return false;
  if (same_name(name, "localhost")) return !bracketed;
  const std::string text(name);
  if (bracketed) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    return ::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1 &&
           is_loopback(reinterpret_cast<const sockaddr&>(v6));
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  return ::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1 &&
         is_loopback(reinterpret_cast<const sockaddr&>(v4));
}

bool is_local_origin(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (starts_with_name(origin, scheme)) return is_local_host(origin.substr(scheme.size()));
  }
  return false;  // also the origin "null" of files and sandboxed pages
}

bool is_json(std::string_view type) {
  std::string_view name = type.substr(0, type.find(';'));
  while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
  return same_name(name, "application/json");
}

bool may_have_body(const RequestHead& head) {
  return head.method == "POST" || head.method == "PUT" || head.method == "DELETE";
}

void check_token(const RequestHead& head, const std::string& token) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = head.value("Authorization");
  if (head.count("Authorization") == 1 && starts_with_name(given, kScheme) &&
      equal_secrets(given.substr(kScheme.size()), token))
    return;
  throw ApiError(401, "Authorization", "A valid bearer token is required: 'Authorization: Bearer TOKEN'.");
}

void check_local(const RequestHead& head) {
  constexpr const char* kWayOut =
      "A service without --token-file answers only requests to localhost or a loopback address, from no "
      "other "
      "website. Behind a proxy, start it with --token-file.";
  for (const std::string_view host : {head.value("Host"), head.authority()}) {
    if (!host.empty() && !is_local_host(host)) throw ApiError(403, "Host", kWayOut);
  }
  if (head.count("Host") > 0 && head.value("Host").empty()) throw ApiError(403, "Host", kWayOut);
  for (const auto& [name, value] : head.fields) {
    if (same_name(name, "Origin") && !is_local_origin(value)) throw ApiError(403, "Origin", kWayOut);
  }
  if (head.method != "POST") return;  // a page of another origin can send no other body unasked
  const bool empty = !head.is_chunked() && content_length(head).value_or(0) == 0;
  if (!empty && (head.count("Content-Type") != 1 || !is_json(head.value("Content-Type")))) {
    throw ApiError(415, "Content-Type",
                   "The body must be JSON, sent with 'Content-Type: application/json'.");
  }
}

}  // namespace

HeadScanner::Result HeadScanner::scan(std::string_view bytes) {
  for (const char byte : bytes) {
    ++size_;
    const auto code = static_cast<unsigned char>(byte);
    const bool text = code == '\t' || (code >= ' ' && code != 127);
    switch (state_) {
      case kFirst:
        if (!text || byte == ' ' || byte == '\t') return kMalformed;
        state_ = kText;
        break;
      case kText:
        if (!text && byte != '\r') return kMalformed;
        if (byte == '\r') state_ = kCarriageReturn;
        break;
      case kCarriageReturn:
        if (byte != '\n') return kMalformed;
        state_ = kLineStart;
        break;
      case kLineStart:
        if (byte == '\r') {
          state_ = kLastCarriageReturn;
        } else if (!text || byte == ' ' || byte == '\t') {
          return kMalformed;
        } else {
          state_ = kText;
        }
        break;
      case kLastCarriageReturn:
        return byte == '\n' ? kComplete : kMalformed;
    }
  }
  return kIncomplete;
}

bool has_bare_line_feed(std::string_view text) {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return true;
  }
  return false;
}

std::size_t RequestHead::count(std::string_view name) const {
  return std::count_if(fields.begin(), fields.end(),
                       [&](const auto& field) { return same_name(field.first, name); });
}

std::string_view RequestHead::value(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& field) { return same_name(field.first, name); });
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view RequestHead::authority() const {
  constexpr std::string_view kScheme = "http://";
  if (!starts_with_name(target, kScheme)) return {};
  const std::string_view rest = std::string_view(target).substr(kScheme.size());
  return rest.substr(0, rest.find_first_of("/?#"));
}

std::string_view RequestHead::path() const {
  std::string_view path = target;
  if (const std::string_view host = authority(); !host.empty())
    path = path.substr(host.data() + host.size() - target.data());
  return path.substr(0, path.find_first_of("?#"));
}

bool RequestHead::expects_continue() const {
  return http11 && same_name(value("Expect"), "100-continue");
}

std::optional<std::size_t> content_length(const RequestHead& head) {
  if (head.is_chunked()) return std::nullopt;
  return parse_size(head.value("Content-Length"));
}

bool is_public(const RequestHead& head) {
  const std::string_view path = head.path();
  return path == "/healthz" || path == "/readyz" || path == "/";
}

void check_framing(const RequestHead& head) {
  if (head.target.size() > kTargetBytes)
    throw ApiError(414, "", fmt::format("The URL is too long; the limit is {} bytes.", kTargetBytes));
  const std::size_t encodings = head.count("Transfer-Encoding");
  const std::size_t lengths = head.count("Content-Length");
  if (encodings > 1 || (encodings == 1 && !same_name(head.value("Transfer-Encoding"), "chunked")))
    throw ApiError(400, "Transfer-Encoding", "The only transfer encoding is 'chunked', given once.");
  if (encodings == 1 && !head.http11)
    throw ApiError(400, "Transfer-Encoding", "HTTP/1.0 has no transfer encodings; send Content-Length.");
  if (encodings == 1 && lengths > 0)
    throw ApiError(400, "Content-Length", "Content-Length and Transfer-Encoding exclude each other.");
  if (lengths > 1 || (lengths == 1 && !content_length(head)))
    throw ApiError(400, "Content-Length", "Content-Length must be one number of bytes.");
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (reads && (encodings == 1 || content_length(head).value_or(0) > 0)) {
    throw ApiError(400, encodings == 1 ? "Transfer-Encoding" : "Content-Length",
                   fmt::format("A {} request has no body here.", head.method));
  }
  const std::size_t hosts = head.count("Host");
  if (hosts > 1 || (hosts == 0 && head.http11))
    throw ApiError(400, "Host", "A request must have exactly one Host.");
  const std::string_view host = head.value("Host");
  if (host.find_first_of(" \t,/@?#\\") != std::string_view::npos ||
      head.authority().find('@') != std::string_view::npos)
    throw ApiError(400, "Host", "Host must be a name or an address, with or without a port.");
  if (head.count("Expect") > 0 && !same_name(head.value("Expect"), "100-continue"))
    throw ApiError(417, "Expect", "The only expectation is '100-continue'.");
}

void check_access(const RequestHead& head, const HttpSettings& settings) {
  if (settings.token.empty()) {
    check_local(head);
  } else if (!is_public(head)) {
    check_token(head, settings.token);
  }
}

void check_body(const RequestHead& head, const HttpSettings& settings, bool needs_body) {
  if (head.count("Content-Encoding") > 0)
    throw ApiError(415, "Content-Encoding", "Compressed bodies are not supported.");
  if (!may_have_body(head) || head.is_chunked()) return;
  const std::optional<std::size_t> length = content_length(head);
  if (!length && needs_body) throw ApiError(411, "Content-Length", "Content-Length is required.");
  if (length.value_or(0) > settings.body_bytes) {
    throw ApiError(413, "Content-Length",
                   fmt::format("The body has {} bytes; the limit is {}.", *length, settings.body_bytes));
  }
}

bool has_tag(const RequestHead& head, std::string_view tag) {
  for (const auto& [name, value] : head.fields) {
    if (!same_name(name, "If-None-Match")) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      one.remove_prefix(std::min(one.find_first_not_of(" \t"), one.size()));
      one = one.substr(0, one.find_last_not_of(" \t") + 1);
      if (one.starts_with("W/")) one.remove_prefix(2);
      if (one == tag || one == "*") return true;
    }
  }
  return false;
}

}  // namespace olrank
