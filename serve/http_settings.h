#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace olrank {

struct HttpSettings {
  std::string address = "127.0.0.1";          // a number or a name
  int port = 8080;                            // 0: any free port
  std::size_t connections = 64;               // that have sent a request; more get a 503
  std::size_t body_bytes = 16'000'000;        // limit per request
  std::chrono::milliseconds request{10'000};  // from a request's first byte to its last
  std::chrono::milliseconds idle{60'000};     // an open connection may wait this long for a request
  std::string access_log;                     // file of a line for each answer; -: stdout; empty: none
  std::string token;                          // required by all but the health checks; empty: none
};

}  // namespace olrank
