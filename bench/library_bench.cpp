// The rounds of bench/python_rounds.py through the C++ library: rank, click, learn. A library for that
// script, so that both run in one process.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "olrank/ranker.h"

extern "C" {

/// `settings` are lines key=value.
void* bench_ranker(const char* kind, std::int64_t features, const char* settings) {
  olrank::RankerOptions options;
  options.kind = kind;
  options.features = features;
  const std::string lines = settings;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t equals = lines.find('=', begin);
    const std::size_t end = lines.find('\n', begin);
    options.settings[lines.substr(begin, equals - begin)] = lines.substr(equals + 1, end - equals - 1);
    begin = end + 1;
  }
  return new olrank::Ranker(options);
}

/// Plays a round for each of the queries [queries × docs × features].
void bench_play(void* handle, const float* values, std::int64_t queries, std::int64_t docs) {
  auto& ranker = *static_cast<olrank::Ranker*>(handle);
  const std::int64_t size = docs * ranker.features();
  std::vector<std::uint8_t> clicks;
  for (std::int64_t round = 0; round < queries; ++round) {
    const float* query = values + round * size;
    const olrank::ShownList list = ranker.rank({query, static_cast<std::size_t>(size)});
    clicks.clear();
    for (const std::int32_t doc : list.docs)
      clicks.push_back(query[doc * ranker.features()] > 0.7F ? 1 : 0);
    ranker.learn(list, clicks);
  }
}

/// Writes the 32 digits of its state and ends the ranker.
void bench_end(void* handle, char* fingerprint) {
  const auto* ranker = static_cast<olrank::Ranker*>(handle);
  std::memcpy(fingerprint, ranker->fingerprint().data(), 32);
  delete ranker;
}
}
