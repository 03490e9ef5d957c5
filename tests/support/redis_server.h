#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "serve/redis_client.h"
#include "tests/support/temporary_folder.h"

namespace olrank {

/// A redis-server of the test's own, on a free port of loopback.
class RedisServer {
 public:
  static bool is_installed() { return std::filesystem::exists("/usr/bin/redis-server"); }

  explicit RedisServer(std::vector<std::string> more = {}) : more_(std::move(more)) { start(); }
  ~RedisServer() {
    if (process_ > 0) kill();
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  RedisSettings settings(const std::string& prefix = "olrank") const {
    return {RedisAddress::parse("redis://127.0.0.1:" + std::to_string(port_) + "/" + prefix)};
  }
  void kill() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  /// Keeps what the disk has now, for set_back().
  void keep() {
    std::filesystem::copy(folder_ / "appendonlydir", folder_ / "kept",
                          std::filesystem::copy_options::recursive);
  }
  /// Ends it, puts what keep() kept in place of what it had, and starts it, as after a failover.
  void set_back() {
    kill();
    std::filesystem::remove_all(folder_ / "appendonlydir");
    std::filesystem::copy(folder_ / "kept", folder_ / "appendonlydir",
                          std::filesystem::copy_options::recursive);
    start();
  }
  /// Again after kill(), on the same port, with what its disk has.
  void start() {
    for (int attempt = 0; attempt < 20; ++attempt) {
      static int ports = 0;
      if (port_ == 0 || attempt > 0) port_ = 20'000 + (::getpid() * 37 + ++ports * 101) % 12'000;
      std::vector<std::string> words = {"/usr/bin/redis-server",
                                        "--port",
                                        std::to_string(port_),
                                        "--bind",
                                        "127.0.0.1",
                                        "--dir",
                                        (folder_ / "").string(),
                                        "--appendonly",
                                        "yes",
                                        "--appendfsync",
                                        "always",
                                        "--save",
                                        "",
                                        "--logfile",
                                        (folder_ / "log").string()};
      words.insert(words.end(), more_.begin(), more_.end());
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      ASSERT_EQ(::posix_spawn(&process_, words[0].c_str(), nullptr, nullptr, arguments.data(), environ), 0);
      for (int wait = 0; wait < 500; ++wait) {
        if (::waitpid(process_, nullptr, WNOHANG) == process_) break;  // the port was taken
        try {
          RedisClient(settings()).call({"PING"});
          return;
        } catch (const RedisAway&) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        } catch (const RedisError&) {  // it wants a password
          return;
        }
      }
    }
    FAIL() << "redis-server does not start.";
  }

 private:
  TemporaryFolder folder_;
  std::vector<std::string> more_;
  int port_ = 0;
  pid_t process_ = 0;
};

}  // namespace olrank
