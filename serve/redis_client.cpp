#include "serve/redis_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hiredis/hiredis.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/runtime/log.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::size_t kIdleConnections = 64;

struct Free {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
  void operator()(redisContext* socket) const { ::redisFree(socket); }
  void operator()(redisReader* reader) const { ::redisReaderFree(reader); }
  void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
};

std::string tls_failure() {
  const unsigned long code = ::ERR_get_error();
  const char* reason = code != 0 ? ::ERR_reason_error_string(code) : nullptr;
  ::ERR_clear_error();
  return reason != nullptr ? reason : "the connection was closed";
}

RedisReply take_reply(const redisReply& raw) {
  RedisReply reply;
  switch (raw.type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      reply.kind = RedisReply::Kind::kText;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_ERROR:
      reply.kind = RedisReply::Kind::kError;
      reply.text.assign(raw.str, raw.len);
      while (reply.text.ends_with('.')) reply.text.pop_back();  // they become part of a sentence
      break;
    case REDIS_REPLY_INTEGER:
      reply.kind = RedisReply::Kind::kNumber;
      reply.number = raw.integer;
      break;
    case REDIS_REPLY_ARRAY:
      reply.kind = RedisReply::Kind::kList;
      for (std::size_t item = 0; item < raw.elements; ++item)
        reply.items.push_back(take_reply(*raw.element[item]));
      break;
    default:
      break;
  }
  return reply;
}

void append_command(std::string& bytes, const RedisClient::Command& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (const std::string& word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* formatted = nullptr;
  const int size =
      ::redisFormatCommandArgv(&formatted, static_cast<int>(words.size()), words.data(), sizes.data());
  if (size < 0) throw std::bad_alloc();
  bytes.append(formatted, size);
  ::redisFreeCommand(formatted);
}

/// Whether the server will take commands in a while: it reads its file, or follows another one.
bool is_busy(const RedisReply& reply) {
  const std::string& text = reply.text;
  return reply.kind == RedisReply::Kind::kError &&
         (text.starts_with("LOADING") || text.starts_with("MASTERDOWN") || text.starts_with("READONLY"));
}

}  // namespace

std::string sha1_hex(std::string_view bytes) {
  unsigned char digest[SHA_DIGEST_LENGTH];
  ::SHA1(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

RedisAddress RedisAddress::parse(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    throw_error<InvalidArgument>("--log '{}': {} Write redis://HOST:PORT/PREFIX, or rediss:// for TLS.",
                                 text, why);
  };
  // First of all, as the other messages show the text.
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    std::string_view before = text.substr(0, at);
    if (const std::size_t scheme = before.find("://"); scheme != std::string_view::npos)
      before.remove_prefix(scheme + 3);
    if (before.find(':') != std::string_view::npos) {
      throw InvalidArgument(
          "--log: A password does not belong on a command line, where others can read it: name its file "
          "with --log-password-file, or set OLRANK_LOG_PASSWORD.");
    }
  }
  RedisAddress address;
  std::string_view rest = text;
  const auto skip = [&rest](std::string_view begin) {
    if (!rest.starts_with(begin)) return false;
    rest.remove_prefix(begin.size());
    return true;
  };
  if (skip("rediss://")) {
    address.tls = true;
  } else if (!skip("redis://")) {
    refuse(
        "The scheme is neither redis nor rediss. (A file for messages is named before the command: olrank "
        "--log FILE serve.)");
  }
  const std::size_t slash = rest.find('/');
  std::string_view place = rest.substr(0, slash);
  if (const std::size_t at = place.rfind('@'); at != std::string_view::npos) {
    address.user = place.substr(0, at);
    place.remove_prefix(at + 1);
  }
  std::string_view port;
  if (place.starts_with('[')) {
    const std::size_t end = place.find(']');
    if (end == std::string_view::npos) refuse("The address has no closing bracket.");
    address.host = place.substr(1, end - 1);
    port = place.substr(end + 1);
  } else {
    const std::size_t colon = place.find(':');
    address.host = place.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view() : place.substr(colon);
  }
  if (address.host.empty()) refuse("The host is missing.");
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data() + 1, port.data() + port.size(), address.port);
    if (port[0] != ':' || error != std::errc{} || end != port.data() + port.size() || address.port < 1 ||
        address.port > 65535)
      refuse("The port is not a number from 1 to 65535.");
  }
  if (slash != std::string_view::npos) address.prefix = rest.substr(slash + 1);
  if (address.prefix.empty()) refuse("The prefix of the keys is missing.");
  if (address.prefix.size() > 100 ||
      std::any_of(address.prefix.begin(), address.prefix.end(), [](unsigned char c) {
        return std::isalnum(c) == 0 &&
               std::string_view("_-.:{}").find(static_cast<char>(c)) == std::string_view::npos;
      }))
    refuse("The prefix may have up to 100 letters, digits and _ - . : { }.");
  return address;
}

std::uint64_t whole_number(std::string_view text, int word) {
  for (; word > 0 && !text.empty(); --word)
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string RedisAddress::text() const {
  return fmt::format("{}://{}{}:{}/{}", tls ? "rediss" : "redis", user.empty() ? "" : user + "@",
                     host.find(':') == std::string::npos ? host : "[" + host + "]", port, prefix);
}

/// All connections with TLS share this.
class RedisClient::Tls {
 public:
  explicit Tls(const RedisSettings& settings) : context_(::SSL_CTX_new(::TLS_client_method())) {
    if (!context_) throw std::bad_alloc();
    const auto require = [](bool done, std::string_view flag, const std::filesystem::path& file) {
      if (!done) throw_error<IoError>("{} {}: {}.", flag, file.string(), tls_failure());
    };
    ::SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (settings.ca.empty()) {
      ::SSL_CTX_set_default_verify_paths(context_.get());
    } else {
      require(::SSL_CTX_load_verify_locations(context_.get(), settings.ca.c_str(), nullptr) == 1,
              "--log-ca", settings.ca);
    }
    if (settings.certificate.empty()) return;
    require(::SSL_CTX_use_certificate_chain_file(context_.get(), settings.certificate.c_str()) == 1,
            "--log-cert", settings.certificate);
    require(::SSL_CTX_use_PrivateKey_file(context_.get(), settings.key.c_str(), SSL_FILETYPE_PEM) == 1,
            "--log-key", settings.key);
  }
  SSL* open() { return ::SSL_new(context_.get()); }

 private:
  std::unique_ptr<SSL_CTX, Free> context_;
};

class RedisClient::Connection {
 public:
  Connection(const RedisSettings& settings, Tls* tls) : settings_(settings) {
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(settings.timeout).count();
    const timeval timeout{micros / 1'000'000, micros % 1'000'000};
    socket_.reset(::redisConnectWithTimeout(settings.address.host.c_str(), settings.address.port, timeout));
    if (!socket_) throw std::bad_alloc();
    if (socket_->err != 0) fail(socket_->errstr);
    ::redisSetTimeout(socket_.get(), timeout);
    if (tls != nullptr) begin_tls(*tls);
    log_in();
  }

  std::vector<RedisReply> exchange(std::span<const Command> commands) {
    std::string bytes;
    for (const Command& command : commands) append_command(bytes, command);
    write(bytes);
    std::vector<RedisReply> replies;
    while (replies.size() < commands.size()) replies.push_back(read());
    return replies;
  }

  std::vector<RedisReply> exchange(const std::vector<Command>& commands, std::span<const Command> further) {
    std::vector<RedisReply> replies = exchange(commands);
    for (const RedisReply& reply : replies) require_ready(reply);
    const RedisReply& first = replies.front();
    const bool did_nothing = first.kind == RedisReply::Kind::kError ||
                             (first.kind == RedisReply::Kind::kList && first.items.empty());
    if (further.empty() || did_nothing) return replies;
    for (RedisReply& reply : exchange(further)) replies.push_back(std::move(reply));
    return replies;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw RedisAway(fmt::format("{} cannot be reached: {}.", settings_.address.text(), why));
  }

  void require_ready(const RedisReply& reply) const {
    if (is_busy(reply))
      throw RedisAway(fmt::format("{} is not ready: {}.", settings_.address.text(), reply.text));
  }

  void begin_tls(Tls& tls) {
    ssl_.reset(tls.open());
    if (!ssl_) throw std::bad_alloc();
    ::SSL_set_fd(ssl_.get(), socket_->fd);
    ::SSL_set_tlsext_host_name(ssl_.get(), settings_.address.host.c_str());
    X509_VERIFY_PARAM* parameters = ::SSL_get0_param(ssl_.get());
    if (::X509_VERIFY_PARAM_set1_ip_asc(parameters, settings_.address.host.c_str()) != 1)
      ::SSL_set1_host(ssl_.get(), settings_.address.host.c_str());
    ::ERR_clear_error();
    if (::SSL_connect(ssl_.get()) == 1) return;
    const long verified = ::SSL_get_verify_result(ssl_.get());
    const std::string reason =
        verified != X509_V_OK ? ::X509_verify_cert_error_string(verified) : tls_failure();
    fail("TLS failed, " + reason);
  }

  void log_in() {
    if (settings_.password.empty() && settings_.address.user.empty()) return;
    Command command = {"AUTH"};
    if (!settings_.address.user.empty()) command.push_back(settings_.address.user);
    command.push_back(settings_.password);
    const RedisReply reply = exchange(std::span(&command, 1)).front();
    require_ready(reply);
    if (reply.kind == RedisReply::Kind::kError)
      throw RedisError(fmt::format("{} refuses the password: {}.", settings_.address.text(), reply.text));
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t written = 0;
      if (ssl_) {
        written = ::SSL_write(ssl_.get(), bytes.data(),
                              static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 30)));
        if (written <= 0) fail(tls_failure());
      } else {
        written = ::send(socket_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(errno == EAGAIN ? "it does not answer" : std::strerror(errno));
      }
      bytes.remove_prefix(written);
    }
  }

  RedisReply read() {
    for (;;) {
      void* raw = nullptr;
      if (::redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) fail(reader_->errstr);
      if (raw != nullptr) {
        const std::unique_ptr<redisReply, Free> owned(static_cast<redisReply*>(raw));
        return take_reply(*owned);
      }
      ssize_t count = 0;
      if (ssl_) {
        count = ::SSL_read(ssl_.get(), buffer_.data(), static_cast<int>(buffer_.size()));
        if (count <= 0) fail(errno == EAGAIN ? "it does not answer" : tls_failure());
      } else {
        count = ::recv(socket_->fd, buffer_.data(), buffer_.size(), 0);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(errno == EAGAIN ? "it does not answer" : std::strerror(errno));
        if (count == 0) fail("it closed the connection");
      }
      ::redisReaderFeed(reader_.get(), buffer_.data(), static_cast<std::size_t>(count));
    }
  }

  const RedisSettings& settings_;
  std::unique_ptr<redisContext, Free> socket_;
  std::unique_ptr<SSL, Free> ssl_;
  std::unique_ptr<redisReader, Free> reader_{::redisReaderCreate()};
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
};

RedisClient::RedisClient(RedisSettings settings) : settings_(std::move(settings)) {
  if (!settings_.address.tls) return;
  tls_ = std::make_unique<Tls>(settings_);
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
}

RedisClient::~RedisClient() = default;

std::string RedisClient::key(std::string_view name) const {
  return fmt::format("{}:{}", settings_.address.prefix, name);
}

std::vector<RedisReply> RedisClient::attempt(const std::vector<Command>& commands,
                                             std::span<const Command> further) {
  std::vector<RedisReply> replies;
  std::unique_ptr<Connection> connection;
  if (const std::lock_guard lock(mutex_); !idle_.empty()) {
    connection = std::move(idle_.back());
    idle_.pop_back();
  }
  if (connection) {
    try {
      replies = connection->exchange(commands, further);
    } catch (const RedisAway&) {  // perhaps the server was started again
      connection.reset();
      const std::lock_guard lock(mutex_);
      idle_.clear();
    }
  }
  if (!connection) {
    connection = std::make_unique<Connection>(settings_, tls_.get());
    replies = connection->exchange(commands, further);
  }
  was_reached_ = true;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleConnections) idle_.push_back(std::move(connection));
  return replies;
}

std::vector<RedisReply> RedisClient::call_all(const std::vector<Command>& commands,
                                              std::span<const Command> further) {
  if (away_) throw RedisAway(fmt::format("{} cannot be reached at the moment.", settings_.address.text()));
  auto wait = wait_;
  for (;;) {
    try {
      std::vector<RedisReply> replies = attempt(commands, further);
      for (const RedisReply& reply : replies) {
        if (reply.kind == RedisReply::Kind::kError && !reply.text.starts_with("NOSCRIPT"))
          throw RedisError(fmt::format("{}: {}.", settings_.address.text(), reply.text));
      }
      return replies;
    } catch (const RedisAway& error) {
      if (wait) {
        wait(error.what());
        continue;
      }
      // A start that fails says so itself.
      if (!away_.exchange(true) && was_reached_)
        log_warning("{} {}", error.what(),
                    settings_.ranks ? "Ranking continues; feedback is rejected."
                                    : "New feedback is not learned until it is back.");
      throw;
    }
  }
}

std::vector<RedisReply> RedisClient::run(const std::string& script, std::span<const std::string> names,
                                         std::span<const std::string> arguments,
                                         std::span<const Command> further) {
  Command known = {"EVALSHA", sha1_hex(script), fmt::format("{}", names.size())};
  for (const std::string& name : names) known.push_back(key(name));
  known.insert(known.end(), arguments.begin(), arguments.end());
  std::vector<Command> commands = {std::move(known)};
  std::vector<RedisReply> replies = call_all(commands, further);
  if (replies.front().kind != RedisReply::Kind::kError) return replies;
  commands.front()[0] = "EVAL";  // the server does not know it yet
  commands.front()[1] = script;
  return call_all(commands, further);
}

void RedisClient::probe() {
  if (!away_) return;
  attempt({{"PING"}}, {});
  if (away_.exchange(false)) log_warning("{} can be reached again.", settings_.address.text());
}

}  // namespace olrank
