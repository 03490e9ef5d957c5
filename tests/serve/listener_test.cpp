#include "serve/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "core/error.h"

namespace olrank {
namespace {

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
