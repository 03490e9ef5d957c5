#include "serve/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/serve/service_fixture.h"

namespace olrank {
namespace {

using std::chrono::milliseconds;

/// A plain socket, so that tests can send malformed requests.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{10, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool send(std::string_view bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// One response, by its Content-Length; empty if the server closed the connection.
  std::string receive() {
    for (;;) {
      const std::size_t head = received_.find("\r\n\r\n");
      if (head != std::string::npos) {
        const std::size_t at = received_.find("Content-Length: ");
        const std::size_t length = at < head ? std::stoul(received_.substr(at + 16)) : 0;
        if (received_.size() >= head + 4 + length) {
          const std::string answer = received_.substr(0, head + 4 + length);
          received_.erase(0, answer.size());
          return answer;
        }
      }
      char bytes[4096];
      const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
      if (got <= 0) return "";
      received_.append(bytes, got);
    }
  }
  std::string ask(std::string_view bytes) {
    send(bytes);
    return receive();
  }

 private:
  int socket_;
  std::string received_;
};

std::string post(const std::string& path, const std::string& body, const std::string& headers = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n{}", path, body.size(),
                     headers, body);
}
std::string get(const std::string& path, const std::string& headers = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", path, headers);
}
int status_of(const std::string& answer) {
  return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
}
nlohmann::json body_of(const std::string& answer) {
  return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, false);
}

const std::string kRank = R"({"query": "q", "docs": [{"id": "a", "features": [1, 2, 3, 4]}]})";

class HttpServerTest : public testing::Test {
 protected:
  static HttpSettings quick() {
    HttpSettings settings;
    settings.port = 0;
    settings.connections = 4;
    settings.body_bytes = 4096;
    settings.request = milliseconds(400);
    settings.idle = milliseconds(2000);
    return settings;
  }
  void start(const HttpSettings& settings) {
    server_ = std::make_unique<HttpServer>(small_.service, settings);
    thread_ = std::thread([this] { server_->run(); });
    while (status_of(Client(port()).ask(get("/healthz"))) != 200)
      std::this_thread::sleep_for(milliseconds(5));
  }
  void TearDown() override {
    if (!server_) return;
    server_->stop();
    thread_.join();
  }
  int port() const { return server_->port(); }

  SmallService small_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, AnswersManyRequestsOnOneConnection) {
  start(quick());
  Client client(port());
  for (int round = 1; round <= 20; ++round) {
    const auto ranking = body_of(client.ask(post("/v1/rank", kRank)));
    ASSERT_EQ(ranking["docs"][0]["id"], "a");
    const std::string feedback =
        nlohmann::json({{"impression", ranking["impression"]}, {"clicks", {0}}}).dump();
    EXPECT_EQ(body_of(client.ask(post("/v1/feedback", feedback)))["round"], round);
  }
  EXPECT_EQ(status_of(client.ask(get("/v1/stats"))), 200);
  EXPECT_EQ(status_of(client.ask(get("/readyz"))), 200);
  EXPECT_EQ(status_of(client.ask(post("/v1/checkpoint", "{}"))), 200);
  const std::string metrics = client.ask(get("/metrics"));
  EXPECT_NE(metrics.find("olrank_requests_total{route=\"/v1/rank\",status=\"200\"} 20\n"),
            std::string::npos);
  EXPECT_NE(client.ask(get("/v1/model")).find("__metadata__"), std::string::npos);
}

TEST_F(HttpServerTest, AcceptsChunkedBodies) {
  start(quick());
  Client client(port());
  const std::string head = "POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(client.ask(head + fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", kRank.size(), kRank))), 200);
  EXPECT_EQ(status_of(client.ask(get("/healthz"))), 200);
}

TEST_F(HttpServerTest, RejectsWithAnErrorBody) {
  start(quick());
  const std::pair<std::string, int> cases[] = {
      {get("/nowhere"), 404},
      {get("/v1/rank"), 404},
      {post("/v1/stats", "{}"), 404},
      {"nonsense\r\n\r\n", 400},
      {"GET /healthz HTTP/9.9\r\n\r\n", 400},
      {get("/" + std::string(9000, 'x')), 414},
      {"POST /v1/rank HTTP/1.1\r\nHost: x\r\n\r\n", 411},
      {"POST /v1/rank HTTP/1.1\r\nContent-Length: x\r\n\r\n", 411},
      {"POST /v1/rank HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 411},
      {"POST /v1/rank HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", 413},
      {post("/v1/rank", kRank, "Content-Encoding: gzip\r\n"), 415},
      {post("/v1/rank", std::string(5000, ' ')), 413},
      {"POST /v1/rank HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n" + std::string(0x20000, ' '),
       413},
      {post("/v1/rank", "{"), 400},
      {post("/v1/feedback", R"({"impression": "no", "clicks": []})"), 404},
  };
  for (const auto& [bytes, expected] : cases) {
    Client client(port());
    const std::string answer = client.ask(bytes);
    EXPECT_EQ(status_of(answer), expected) << bytes.substr(0, 80);
    EXPECT_TRUE(body_of(answer).contains("error")) << answer.substr(0, 300);
  }
  Client client(port());
  EXPECT_EQ(
      body_of(client.ask(
          post("/v1/rank", R"({"query": "q", "docs": [{"id": "a", "features": [1]}]})")))["error"]["field"],
      "docs[0].features");
}

TEST_F(HttpServerTest, TimesOutSlowSenders) {
  start(quick());
  const std::string beginnings[] = {"P", "POST /v1/rank HTTP/1.1\r\nContent-Length: 100\r\n\r\n{",
                                    "GET /healthz HTTP/1.1\r\nA: "};
  for (const std::string& beginning : beginnings) {
    Client client(port());
    client.send(beginning);
    const auto begin = std::chrono::steady_clock::now();
    std::thread trickle([&] {
      for (int time = 0; time < 30 && client.send("x"); ++time)
        std::this_thread::sleep_for(milliseconds(50));
    });
    const std::string answer = client.receive();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1500)) << beginning;
    EXPECT_TRUE(answer.empty() || status_of(answer) >= 400) << answer;
    trickle.join();
  }
  EXPECT_EQ(status_of(Client(port()).ask(get("/healthz"))), 200);
}

TEST_F(HttpServerTest, RejectsConnectionsBeyondTheLimit) {
  start(quick());
  std::vector<std::unique_ptr<Client>> clients;
  for (int number = 0; number < 4; ++number) {
    clients.push_back(std::make_unique<Client>(port()));
    // start()'s own connection may still be closing.
    for (int time = 0; time < 100 && status_of(clients.back()->ask(get("/healthz"))) != 200; ++time) {
      std::this_thread::sleep_for(milliseconds(50));
      clients.back() = std::make_unique<Client>(port());
    }
  }
  EXPECT_EQ(status_of(Client(port()).receive()), 503);
  clients.clear();
  int status = 0;
  for (int time = 0; time < 100 && status != 200; ++time) {
    std::this_thread::sleep_for(milliseconds(50));
    status = status_of(Client(port()).ask(get("/healthz")));
  }
  EXPECT_EQ(status, 200);
}

TEST_F(HttpServerTest, RequiresTheTokenExceptForHealthChecks) {
  HttpSettings settings = quick();
  settings.token = "secret";
  settings.connections = 64;
  start(settings);
  for (const std::string header :
       {"", "Authorization: Bearer secre\r\n", "Authorization: Bearer Secret\r\n",
        "Authorization: secret\r\n", "Authorization: Basic secret\r\n"}) {
    for (const std::string& bytes : {post("/v1/rank", kRank, header), get("/v1/stats", header),
                                     get("/metrics", header), get("/v1/model", header)}) {
      Client client(port());
      const std::string answer = client.ask(bytes);
      EXPECT_EQ(status_of(answer), 401);
      EXPECT_EQ(body_of(answer)["error"]["field"], "Authorization");
    }
  }
  Client client(port());
  EXPECT_EQ(status_of(client.ask(get("/healthz"))), 200);
  EXPECT_EQ(status_of(client.ask(get("/readyz"))), 200);
  EXPECT_EQ(status_of(client.ask(post("/v1/rank", kRank, "Authorization: Bearer secret\r\n"))), 200);
}

TEST_F(HttpServerTest, ListensBeyondLoopbackOnlyWithAToken) {
  HttpSettings settings = quick();
  settings.address = "0.0.0.0";
  EXPECT_THROW(HttpServer(small_.service, settings), InvalidArgument);
  settings.token = "secret";
  EXPECT_GT(HttpServer(small_.service, settings).port(), 0);
}

TEST_F(HttpServerTest, ThrowsWhenThePortIsTaken) {
  start(quick());
  HttpSettings settings = quick();
  settings.port = port();
  EXPECT_THROW(HttpServer(small_.service, settings), IoError);
}

TEST_F(HttpServerTest, StopsWhileConnectionsAreOpen) {
  start(quick());
  Client idle(port());
  EXPECT_EQ(status_of(idle.ask(get("/healthz"))), 200);
  const auto begin = std::chrono::steady_clock::now();
  server_->stop();
  thread_.join();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(4000));
}

}  // namespace
}  // namespace olrank
