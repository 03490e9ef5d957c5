#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace olrank::fuzz {

/// A reader of foreign bytes, under attack by libFuzzer and by an ordinary test.
struct Target {
  const char* name = "";  // of its corpus, too
  void (*check)(std::string_view bytes) = nullptr;
  std::string_view telling;  // bytes that mean something in the format
  std::uint32_t mutations = 20'000;
};

/// A broken promise aborts, which both the fuzzer and the tests see.
inline void promise(bool kept, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (kept) return;
  fmt::print(stderr, "{}:{}: This promise is broken.\n", file, line);
  std::abort();
}

inline bool is_printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

inline void check_sentence(std::string_view sentence) {
  const bool good = sentence.size() < 1000 && is_printable(sentence) &&
                    (sentence.ends_with('.') || sentence.ends_with('?'));
  if (!good) fmt::print(stderr, "{}\n", sentence);
  promise(good);
}

/// The reader takes the bytes, or refuses them in a sentence; returns whether it took them.
template <class Refusal, class Read>
bool is_taken(const Read& read) {
  try {
    read();
  } catch (const Refusal& error) {
    check_sentence(error.what());
    return false;
  }
  return true;
}

/// A check whose first byte says how the others are read.
template <void (*check)(unsigned choice, std::string_view bytes)>
void with_choice(std::string_view bytes) {
  if (!bytes.empty()) check(static_cast<unsigned char>(bytes.front()), bytes.substr(1));
}

}  // namespace olrank::fuzz
