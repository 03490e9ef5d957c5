#include "serve/http_server.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "serve/access_log.h"
#include "serve/listener.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

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
    const timeval patience{30, 0};
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
      if (got <= 0) {
        closed_ = got == 0 || errno == ECONNRESET;
        return "";
      }
      received_.append(bytes, got);
    }
  }
  std::string ask(std::string_view bytes) {
    send(bytes);
    return receive();
  }
  /// Whether the server closed the connection, without another answer.
  bool is_closed() { return receive().empty() && received_.empty() && closed_; }

 private:
  int socket_;
  std::string received_;
  bool closed_ = false;
};

std::string post(const std::string& path, const std::string& body, const std::string& headers = "") {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n{}\r\n{}",
      path, body.size(), headers, body);
}
std::string get(const std::string& path, const std::string& headers = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, headers);
}
int code_of(const std::string& answer) {
  return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
}
nlohmann::json body_of(const std::string& answer) {
  return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, false);
}

std::string chunked(const std::string& body,
                    const std::string& headers = "Transfer-Encoding: chunked\r\n") {
  return "POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers +
         "\r\n" + body;
}

const std::string kRank = R"({"query": "q", "docs": [{"id": "a", "features": [1, 2, 3, 4]}]})";

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    HttpSettings settings;
    settings.port = 0;
    settings.connections = 4;
    settings.body_bytes = 4096;
    Listener listener(settings);
    port_ = listener.port();
    server_ = std::make_unique<HttpServer>(std::vector{Surface{"", &small_.service}}, settings, listener);
    thread_ = std::thread([this] { server_->run(); });
    while (code_of(Client(port()).ask(get("/healthz"))) != 200)
      std::this_thread::sleep_for(milliseconds(5));
  }
  void TearDown() override {
    server_->stop();
    thread_.join();
  }
  int port() const { return port_; }

  SmallService small_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  int port_ = 0;
};

TEST_F(HttpServerTest, AcceptsChunkedBodies) {
  Client client(port());
  const std::string body =
      fmt::format("{:x};name=\"a value\"\r\n{}\r\n0\r\nTrailer: x\r\n\r\n", kRank.size(), kRank);
  EXPECT_EQ(code_of(client.ask(chunked(body))), 200);
  const std::string two =
      fmt::format("1\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", kRank[0], kRank.size() - 1, kRank.substr(1));
  EXPECT_EQ(code_of(client.ask(chunked(two))), 200);
  EXPECT_EQ(code_of(client.ask(get("/healthz"))), 200);
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  Client client(port());
  client.send(get("/healthz") + post("/v1/rank", kRank) + get("/nowhere") + get("/healthz"));
  EXPECT_TRUE(body_of(client.receive()).contains("alive"));
  EXPECT_TRUE(body_of(client.receive()).contains("impression"));
  EXPECT_EQ(code_of(client.receive()), 404);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerTest, AnswersOtherFormsOfRequests) {
  Client client(port());
  EXPECT_EQ(code_of(client.ask(get("/healthz?full=1"))), 200);
  EXPECT_EQ(code_of(client.ask(get("http://localhost:8080/healthz"))), 200);
  client.send("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/v1/stats"));
  // One answer by its length, so the second one follows the first one's head.
  EXPECT_NE(client.receive().find("HTTP/1.1 200 OK", 1), std::string::npos);
  EXPECT_EQ(code_of(Client(port()).ask("GET /healthz HTTP/1.0\r\n\r\n")), 200);
  Client old(port());
  EXPECT_EQ(code_of(old.ask("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")), 200);
  EXPECT_EQ(code_of(old.ask("GET /healthz HTTP/1.0\r\n\r\n")), 200);
  EXPECT_TRUE(old.is_closed());
}

TEST_F(HttpServerTest, AsksForAnExpectedBody) {
  Client client(port());
  const std::string request = post("/v1/rank", kRank, "Expect: 100-continue\r\n");
  const std::size_t head = request.find("\r\n\r\n") + 4;
  EXPECT_EQ(code_of(client.ask(request.substr(0, head))), 100);
  EXPECT_EQ(code_of(client.ask(request.substr(head))), 200);
  EXPECT_EQ(code_of(Client(port()).ask(post("/v1/rank", kRank, "Expect: gold\r\n"))), 417);
}

TEST_F(HttpServerTest, SendsTheModelOnlyWhenItHasChanged) {
  Client client(port());
  const std::string whole = client.ask(get("/v1/model"));
  const std::size_t begin = whole.find("ETag: ") + 6;
  const std::string tag = whole.substr(begin, whole.find("\r\n", begin) - begin);
  EXPECT_EQ(tag.size(), 34);
  for (const std::string& given : {tag, "W/" + tag, "\"other\", " + tag, std::string("*")}) {
    const std::string answer = client.ask(get("/v1/model", "If-None-Match: " + given + "\r\n"));
    EXPECT_EQ(code_of(answer), 304) << given;
    EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
    EXPECT_TRUE(contains(answer, "ETag: " + tag));
  }
  EXPECT_EQ(client.ask(get("/v1/model", "If-None-Match: \"other\"\r\n")), whole);
  EXPECT_FALSE(contains(client.ask(post("/v1/rank", kRank)), "ETag"));
}

TEST_F(HttpServerTest, RejectsWithAnErrorBody) {
  const auto outcome = [&](const std::string& bytes) {
    const std::string answer = Client(port()).ask(bytes);
    const std::size_t allowed = answer.find("Allow: ");
    return fmt::format("{}{}{}", code_of(answer),
                       allowed == std::string::npos
                           ? ""
                           : ", " + answer.substr(allowed, answer.find('\r', allowed) - allowed),
                       body_of(answer).contains("error") ? " with an error" : "");
  };
  expect_cases("serve/http_server_test.txt", "refused", outcome);
  const std::pair<std::string, int> cases[] = {
      {get("/" + std::string(9000, 'x')), 414},
      {get("/" + std::string(90000, 'x')), 414},
      {get("/healthz", "A: " + std::string(90000, 'x') + "\r\n"), 431},
      {post("/v1/rank", std::string(5000, ' ')), 413},
      {chunked("20000\r\n" + std::string(0x20000, ' ')), 413}};
  for (const auto& [bytes, status] : cases)
    EXPECT_EQ(outcome(bytes), fmt::format("{} with an error", status)) << bytes.substr(0, 80);
}

TEST_F(HttpServerTest, RejectsMalformedRequestsAndCloses) {
  // Each is followed by a request that must not be answered.
  const auto outcome = [&](const std::string& bytes) {
    Client client(port());
    const std::string answer = client.ask(bytes + get("/healthz"));
    const bool is_told = answer.find("Connection: close\r\n") != std::string::npos;
    const bool has_error = body_of(answer).contains("error");
    return fmt::format("{}{}{}", code_of(answer), is_told && client.is_closed() ? ", closed" : "",
                       has_error ? " with an error" : "");
  };
  expect_cases("serve/http_server_test.txt", "malformed", outcome);
  EXPECT_EQ(outcome(chunked("2;" + std::string(20'000, 'x'))), "400, closed with an error");
}

TEST_F(HttpServerTest, RejectsConnectionsBeyondTheLimit) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int number = 0; number < 4; ++number) {
    clients.push_back(std::make_unique<Client>(port()));
    EXPECT_EQ(code_of(clients.back()->ask(get("/v1/stats"))), 200);
  }
  const std::string answer = Client(port()).ask(get("/v1/stats"));
  EXPECT_EQ(code_of(answer), 503);
  EXPECT_TRUE(contains(answer, "Retry-After: 1\r\n"));
  EXPECT_EQ(code_of(Client(port()).ask(get("/readyz"))), 200) << "health checks have room of their own";
  EXPECT_EQ(code_of(clients.front()->ask(get("/v1/stats"))), 200);
  clients.clear();
  int status = 0;
  for (int time = 0; time < 100 && status != 200; ++time) {
    std::this_thread::sleep_for(milliseconds(50));
    status = code_of(Client(port()).ask(get("/v1/stats")));
  }
  EXPECT_EQ(status, 200);
}

// The first jobs wait for each other, so that none is done before every thread has one.
TEST(WorkerThreadsTest, DoesAllJobsOnAtMostItsThreads) {
  std::mutex mutex;
  std::condition_variable all_run;
  std::set<std::thread::id> seen;
  int running = 0;
  int most = 0;
  int done = 0;
  {
    WorkerThreads threads(3);
    for (int job = 0; job < 60; ++job) {
      threads.add([&] {
        {
          std::unique_lock lock(mutex);
          seen.insert(std::this_thread::get_id());
          most = std::max(most, ++running);
          all_run.notify_all();
          all_run.wait_for(lock, std::chrono::seconds(20), [&] { return most >= 3; });
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::lock_guard lock(mutex);
        --running;
        ++done;
      });
    }
  }
  EXPECT_EQ(done, 60);
  EXPECT_EQ(most, 3);
  EXPECT_EQ(seen.size(), 3U);
}

/// A model whose rounds are learned elsewhere, and which takes a while to copy.
struct NumberedSource : RankerSource {
  std::shared_ptr<const PublishedRanker> latest() const override {
    PublishedRanker published;
    published.round = round;
    return std::make_shared<PublishedRanker>(published);
  }
  std::optional<std::string> failure() const override { return std::nullopt; }
  bool learns_from_unshown() const override { return false; }
  State state() override { return {}; }
  Snapshot snapshot() override {
    ++made;
    return {round, fmt::format("round {}", round), made_in};
  }

  std::uint64_t round = 1;
  std::chrono::nanoseconds made_in{};
  std::atomic<int> made = 0;
};

Answer snapshot_answer(Service& service, const std::string& known = "") {
  RequestHead head;
  head.method = "GET";
  head.target = "/v1/snapshot";
  if (!known.empty()) head.fields.emplace_back("If-None-Match", known);
  return answer_request(find_route(head, {}, true), service, head, "");
}

TEST(SharedSnapshotTest, FollowersShareOneUntilLearningHasRested) {
  const FeedbackLog log;
  NumberedSource source;
  source.made_in = std::chrono::hours(1);
  NoLists lists;
  Service service(small_parts(), lists, log, source);
  in_threads(8, [&](int) { EXPECT_EQ(snapshot_answer(service).tag, "\"test-1\""); });
  source.round = 2;
  const Answer answer = snapshot_answer(service);
  EXPECT_EQ(answer.tag, "\"test-1\"");
  EXPECT_TRUE(contains(answer.body, "round 1"));
  EXPECT_EQ(snapshot_answer(service, answer.tag).status, 304);
  EXPECT_EQ(source.made, 1);
}

TEST(SharedSnapshotTest, IsMadeAgainOnceItsModelIsNotTheLatest) {
  const FeedbackLog log;
  NumberedSource source;
  NoLists lists;
  Service service(small_parts(), lists, log, source);
  const std::string first = snapshot_answer(service).tag;
  std::this_thread::sleep_for(milliseconds(110));
  EXPECT_EQ(snapshot_answer(service, first).status, 304);
  EXPECT_EQ(source.made, 1);
  source.round = 2;
  const Answer answer = snapshot_answer(service, first);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.tag, "\"test-2\"");
  EXPECT_TRUE(contains(answer.body, "round 2"));
  EXPECT_EQ(snapshot_answer(service, answer.tag).status, 304);
  EXPECT_EQ(source.made, 2);
}

/// Answers one request with as many pieces as are asked for, of a file of ten, and then falls silent.
class SlowFile {
 public:
  SlowFile(int pieces, milliseconds pause) : socket_(Listener(any_port()).release()) {
    thread_ = std::thread([this, pieces, pause] {
      const int client = ::accept(socket_, nullptr, nullptr);
      char request[4096];
      ::recv(client, request, sizeof request, 0);
      send(client, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"a\"\r\n\r\n");
      for (int piece = 0; piece < pieces; ++piece) {
        std::this_thread::sleep_for(pause);
        send(client, "x");
      }
      ::recv(client, request, sizeof request, 0);  // until the client gives up or has all
      ::close(client);
    });
  }
  ~SlowFile() {
    thread_.join();
    ::close(socket_);
  }
  SlowFile(const SlowFile&) = delete;
  SlowFile& operator=(const SlowFile&) = delete;

  std::string url() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    return fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
  }

 private:
  static HttpSettings any_port() {
    HttpSettings settings;
    settings.port = 0;
    return settings;
  }
  static void send(int client, std::string_view bytes) {
    ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  int socket_;
  std::thread thread_;
};

TEST(HttpFileTest, ArrivesHoweverSlowTheLineAndFailsWhereItStandsStill) {
  const milliseconds timeout(800);
  const SlowFile slow(10, milliseconds(100));  // 1 s in all
  EXPECT_EQ(HttpFile(slow.url(), "/", "", "", timeout).fetch(), "xxxxxxxxxx");
  const SlowFile stalled(5, milliseconds(1));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(contains(message_of<IoError>([&] { HttpFile(stalled.url(), "/", "", "", timeout).fetch(); }),
                       "timeout"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, timeout);
}

TEST(WorkerThreadsTest, StartsThreadsForJobsThatWait) {
  std::atomic<bool> last{false};
  WorkerThreads threads(2);
  threads.add([&] {
    while (!last) std::this_thread::yield();
  });
  threads.add([&] { last = true; });
}

}  // namespace
}  // namespace olrank
