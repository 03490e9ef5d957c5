#include "serve/request_head.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "core/error.h"
#include "serve/listener.h"
#include "tests/support/api_refusal.h"
#include "tests/support/cases.h"

namespace olrank {
namespace {

/// A request of a line "METHOD TARGET", maybe with " HTTP/1.0" behind it, and its fields.
RequestHead head_of(const std::string& text) {
  RequestHead head;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  std::istringstream words(line);
  std::string version;
  words >> head.method >> head.target >> version;
  head.http11 = version.empty();
  while (std::getline(lines, line)) {
    const std::size_t colon = line.find(':');
    head.fields.emplace_back(line.substr(0, colon), line.substr(std::min(colon + 2, line.size())));
  }
  return head;
}

template <class Check>
std::string status_text(const Check& check) {
  return fmt::format("{}", status_of(check));
}

template <class Outcome>
void expect_heads(const std::string& section, const Outcome& outcome) {
  expect_cases("serve/request_head_test.txt", section, outcome);
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
  expect_heads("scanned", [](const std::string& text) {
    return HeadScanner().scan(text) == HeadScanner::kMalformed ? "malformed" : "another";
  });
  expect_heads("line feeds",
               [](const std::string& text) { return has_bare_line_feed(text) ? "bare" : "none"; });
}

TEST(RequestHeadTest, SplitsTargets) {
  expect_heads("targets", [](const std::string& target) {
    RequestHead request;
    request.target = target;
    return fmt::format("'{}' '{}'", request.authority(), request.path());
  });
}

TEST(RequestHeadTest, AcceptsOneFraming) {
  const auto framing = [](const std::string& text) {
    return status_text([&] { check_framing(head_of(text)); });
  };
  expect_heads("framing", framing);
  EXPECT_EQ(framing("GET /" + std::string(9000, 'x') + "\nHost: a"), "414");
}

TEST(RequestHeadTest, LimitsBodies) {
  HttpSettings settings;
  settings.body_bytes = 100;
  for (const bool needed : {true, false}) {
    expect_heads(needed ? "bodies of at most 100 bytes" : "bodies that need not be",
                 [&](const std::string& text) {
                   return status_text([&] { check_body(head_of(text), settings, needed); });
                 });
  }
}

TEST(RequestHeadTest, GivesAccessToLocalRequestsOrThoseWithTheToken) {
  HttpSettings settings;
  const auto access = [&](const std::string& text) {
    return status_text([&] { check_access(head_of(text), settings); });
  };
  expect_heads("access without a token", access);
  settings.token = "secret";
  expect_heads("access with the token secret", access);
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
