#include "serve/request_head.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "core/error.h"
#include "serve/api_error.h"
#include "serve/listener.h"

namespace olrank {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

RequestHead head(const std::string& method, Fields fields, const std::string& target = "/v1/rank") {
  RequestHead head;
  head.method = method;
  head.target = target;
  head.fields = std::move(fields);
  return head;
}
RequestHead get_from(const std::string& host) {
  return head("GET", {{"Host", host}}, "/v1/stats");
}

/// The status of the error that `check` throws; 0 without one.
template <class Check>
int rejection_status(const Check& check) {
  try {
    check();
    return 0;
  } catch (const ApiError& error) {
    return error.status();
  }
}
int access_of(const RequestHead& head, const std::string& token = "") {
  HttpSettings settings;
  settings.token = token;
  return rejection_status([&] { check_access(head, settings); });
}
int framing_of(const RequestHead& head) {
  return rejection_status([&] { check_framing(head); });
}

TEST(HeadScannerTest, FindsTheEndInAnyPieces) {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\tb \xc3\xa9\r\nB:\r\n\r\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    HeadScanner scanner;
    const auto first = scanner.scan(text.substr(0, cut));
    EXPECT_EQ(first, cut == text.size() ? HeadScanner::kComplete : HeadScanner::kIncomplete);
    if (first == HeadScanner::kIncomplete) {
      EXPECT_EQ(scanner.scan(text.substr(cut) + "body\n"), HeadScanner::kComplete);
    }
    EXPECT_EQ(scanner.size(), text.size());
  }
}

TEST(HeadScannerTest, RefusesWhatParsersReadDifferently) {
  const std::string cases[] = {"\r\nGET",
                               " GET",
                               "\n",
                               "GET / HTTP/1.1\n",
                               "GET / HTTP/1.1\rHost",
                               "GET / HTTP/1.1\r\n Host: a",
                               "GET / HTTP/1.1\r\nA: b\r\n\tc",
                               std::string("GET \0", 5),
                               "GET / HTTP/1.1\r\nA: \x7f",
                               "GET / HTTP/1.1\r\n\n",
                               "GET / HTTP/1.1\r\n\r\r",
                               "\x16\x03\x01"};
  for (const std::string& text : cases)
    EXPECT_EQ(HeadScanner().scan(text), HeadScanner::kMalformed) << text;
}

TEST(RequestHeadTest, FindsBareLineFeeds) {
  EXPECT_FALSE(has_bare_line_feed(""));
  EXPECT_FALSE(has_bare_line_feed("\r\n5\r\n"));
  EXPECT_TRUE(has_bare_line_feed("5\n"));
  EXPECT_TRUE(has_bare_line_feed("\n"));
  EXPECT_TRUE(has_bare_line_feed("\r\n\n"));
}

TEST(RequestHeadTest, SplitsTargets) {
  const std::pair<std::string, std::pair<std::string, std::string>> cases[] = {
      {"/v1/rank", {"", "/v1/rank"}},
      {"/v1/rank?a=/b", {"", "/v1/rank"}},
      {"http://a:1/v1/rank?b", {"a:1", "/v1/rank"}},
      {"HTTP://a", {"a", ""}},
      {"http://a?b/c", {"a", ""}},
      {"http:///a", {"", "http:///a"}},
      {"//a/b", {"", "//a/b"}},
      {"*", {"", "*"}},
  };
  for (const auto& [target, expected] : cases) {
    const RequestHead request = head("GET", {}, target);
    EXPECT_EQ(request.authority(), expected.first) << target;
    EXPECT_EQ(request.path(), expected.second) << target;
  }
}

TEST(RequestHeadTest, AcceptsOneFraming) {
  const Fields host = {{"Host", "a"}};
  const auto with = [&](Fields more) {
    more.insert(more.begin(), host.begin(), host.end());
    return more;
  };
  EXPECT_EQ(framing_of(head("POST", with({{"Content-Length", "5"}}))), 0);
  EXPECT_EQ(framing_of(head("POST", with({{"transfer-encoding", "Chunked"}}))), 0);
  EXPECT_EQ(framing_of(head("GET", with({{"content-length", "0"}}))), 0);
  EXPECT_EQ(framing_of(head("GET", with({{"Content-Length", "1"}}))), 400);
  EXPECT_EQ(framing_of(head("GET", with({{"Transfer-Encoding", "chunked"}}))), 400);
  EXPECT_EQ(framing_of(head("HEAD", with({{"Content-Length", "1"}}))), 400);
  EXPECT_EQ(framing_of(head("GET", host, "/" + std::string(9000, 'x'))), 414);
  for (const char* encoding : {"", "xchunked", "chunkedx", "gzip, chunked", "chunked, chunked", "identity"})
    EXPECT_EQ(framing_of(head("POST", with({{"Transfer-Encoding", encoding}}))), 400) << encoding;
  for (const char* length : {"", "-1", "+1", "1 ", "1,1", "0x1", "1e3", "1.0"})
    EXPECT_EQ(framing_of(head("POST", with({{"Content-Length", length}}))), 400) << length;
  EXPECT_EQ(framing_of(head("POST", with({{"Content-Length", "1"}, {"Content-Length", "1"}}))), 400);
  EXPECT_EQ(framing_of(head("POST", with({{"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}}))),
            400);
  EXPECT_EQ(framing_of(head("GET", {})), 400);
  EXPECT_EQ(framing_of(head("GET", with(host))), 400);
  for (const char* wrong : {"a b", "a,b", "a@b", "a/b"})
    EXPECT_EQ(framing_of(head("GET", {{"Host", wrong}})), 400);
  RequestHead old = head("GET", {});
  old.http11 = false;
  EXPECT_EQ(framing_of(old), 0);
  old = head("POST", {{"Transfer-Encoding", "chunked"}});
  old.http11 = false;
  EXPECT_EQ(framing_of(old), 400);
}

TEST(RequestHeadTest, LimitsBodies) {
  HttpSettings settings;
  settings.body_bytes = 100;
  const auto body_of = [&](Fields fields) {
    return rejection_status([&] { check_body(head("POST", std::move(fields)), settings, true); });
  };
  EXPECT_EQ(body_of({{"Content-Length", "100"}}), 0);
  EXPECT_EQ(body_of({{"Content-Length", "101"}}), 413);
  EXPECT_EQ(body_of({{"Content-Length", "99999999999999999999999999"}}), 413);
  EXPECT_EQ(body_of({}), 411);
  EXPECT_EQ(body_of({{"Content-Length", "1"}, {"Content-Encoding", "gzip"}}), 415);
  const auto needless = [&](Fields fields) {
    return rejection_status([&] { check_body(head("POST", std::move(fields)), settings, false); });
  };
  EXPECT_EQ(needless({}), 0);
  EXPECT_EQ(needless({{"Content-Length", "101"}}), 413);
}

TEST(RequestHeadTest, WithoutATokenAcceptsLocalHostsOnly) {
  for (const char* host : {"localhost", "LocalHost:8080", "127.0.0.1", "127.9.9.9:1", "[::1]", "[::1]:8080",
                           "[::ffff:127.0.0.1]", "localhost:"})
    EXPECT_EQ(access_of(get_from(host)), 0) << host;
  for (const char* host :
       {"", "evil.example", "127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
        "0.0.0.0", "10.0.0.1", "[::]", "[::2]:80", "::1", "[localhost]", "127.1", "localhost:x", "[::1",
        "[::1]x", ":80", "127.0.0.1:80:80"})
    EXPECT_EQ(access_of(get_from(host)), 403) << host;
}

TEST(RequestHeadTest, WithoutATokenRefusesOtherWebsites) {
  const auto from = [](const char* origin) {
    return access_of(head("GET", {{"Host", "localhost"}, {"Origin", origin}}));
  };
  for (const char* origin : {"http://localhost", "https://127.0.0.1:8443", "http://[::1]:3000"})
    EXPECT_EQ(from(origin), 0) << origin;
  for (const char* origin : {"null", "", "http://", "https://evil.example", "http://localhost.evil.example",
                             "file://", "localhost"})
    EXPECT_EQ(from(origin), 403) << origin;
}

TEST(RequestHeadTest, WithoutATokenAcceptsJsonOnly) {
  const auto of_type = [](Fields types, const char* length) {
    types.emplace_back("Host", "localhost");
    types.emplace_back("Content-Length", length);
    return access_of(head("POST", std::move(types)));
  };
  for (const char* type : {"application/json", "Application/JSON; charset=utf-8", "application/json ;x"})
    EXPECT_EQ(of_type({{"Content-Type", type}}, "5"), 0) << type;
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json"})
    EXPECT_EQ(of_type({{"Content-Type", type}}, "5"), 415) << type;
  EXPECT_EQ(of_type({}, "5"), 415);
  EXPECT_EQ(of_type({{"Content-Type", "application/json"}, {"Content-Type", "application/json"}}, "5"),
            415);
  // Without a body there is nothing to have a type.
  EXPECT_EQ(of_type({}, "0"), 0);
  EXPECT_EQ(of_type({{"Content-Type", "text/plain"}}, "0"), 0);
  EXPECT_EQ(access_of(head("POST", {{"Host", "localhost"}})), 0);
}

TEST(RequestHeadTest, WithATokenAcceptsAnyHost) {
  EXPECT_EQ(access_of(get_from("ranker.example"), "secret"), 401);
  const auto with = [](const char* given) {
    return access_of(
        head("POST", {{"Host", "ranker.example"}, {"Authorization", given}, {"Origin", "https://a"}}),
        "secret");
  };
  EXPECT_EQ(with("Bearer secret"), 0);
  for (const char* given :
       {"", "Bearer", "Bearer ", "Bearer secre", "Bearer Secret", "Bearer  secret", "Basic secret"})
    EXPECT_EQ(with(given), 401) << given;
  const RequestHead health = head("GET", {{"Host", "ranker.example"}}, "/healthz");
  EXPECT_EQ(access_of(health, "secret"), 0);
}

HttpSettings at(const std::string& address, const std::string& token = "") {
  HttpSettings settings;
  settings.address = address;
  settings.port = 0;
  settings.token = token;
  return settings;
}

TEST(ListenerTest, TellsLoopbackByTheNumber) {
  const auto is_loopback_number = [](const char* text) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    if (::inet_pton(AF_INET, text, &v4.sin_addr) == 1)
      return is_loopback(reinterpret_cast<const sockaddr&>(v4));
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    EXPECT_EQ(::inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return is_loopback(reinterpret_cast<const sockaddr&>(v6));
  };
  for (const char* text : {"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:127.9.8.7"})
    EXPECT_TRUE(is_loopback_number(text)) << text;
  for (const char* text : {"0.0.0.0", "126.0.0.1", "128.0.0.1", "10.127.0.1", "::", "::ffff:10.0.0.1",
                           "::127.0.0.1", "::7f00:1", "fe80::1", "::2"})
    EXPECT_FALSE(is_loopback_number(text)) << text;
}

TEST(ListenerTest, ListensOnLoopbackWithoutAToken) {
  for (const char* address : {"127.0.0.1", "127.1.2.3", "localhost"})
    EXPECT_GT(Listener(at(address)).port(), 0);
}

TEST(ListenerTest, NamesItsUrlByTheNumber) {
  for (const char* address : {"127.0.0.1", "localhost", "127.1"}) {
    const Listener listener(at(address));
    EXPECT_EQ(listener.url(), fmt::format("http://127.0.0.1:{}", listener.port()));
  }
}

TEST(ListenerTest, ListensBeyondLoopbackOnlyWithAToken) {
  EXPECT_THROW(Listener(at("0.0.0.0")), InvalidArgument);
  EXPECT_THROW(Listener(at("::")), InvalidArgument);
  EXPECT_GT(Listener(at("0.0.0.0", "secret")).port(), 0);
}

TEST(ListenerTest, RefusesNamesThatDoNotResolve) {
  for (const char* address : {"127.evil.invalid", "127.0.0.1.invalid", "", " 127.0.0.1"})
    EXPECT_THROW(Listener(at(address)), InvalidArgument) << address;
}

TEST(ListenerTest, ThrowsWhenThePortIsTaken) {
  const Listener first(at("127.0.0.1"));
  HttpSettings settings = at("127.0.0.1");
  settings.port = first.port();
  EXPECT_THROW(Listener second(settings), IoError);
}

TEST(ListenerTest, RefusesAddressesOfOtherMachines) {
  HttpSettings settings = at("192.0.2.1");  // an address for documents
  settings.token = "secret";
  EXPECT_THROW(Listener{settings}, InvalidArgument);
}

}  // namespace
}  // namespace olrank
