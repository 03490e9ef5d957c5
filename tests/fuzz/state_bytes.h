#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/io/state_archive.h"

namespace olrank::fuzz {

template <class T>
void put_values(StateWriter& state, std::string_view name, std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  state.put(name, values);
}

/// Puts entries, each given as "NAME TYPE BYTES:" and so many bytes, with a letter for the type: c for
/// text, d and f for floating-point numbers, l and i for signed, L, I and B for unsigned ones.
inline void put_entries(StateWriter& state, std::string_view text) {
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    const char type = text.empty() ? 'c' : text.front();
    text.remove_prefix(std::min<std::size_t>(2, text.size()));
    std::size_t size = 0;
    for (; !text.empty() && text.front() != ':'; text.remove_prefix(1))
      size = (size * 10 + static_cast<unsigned char>(text.front() - '0')) % 10'000;
    text.remove_prefix(text.empty() ? 0 : 1);
    const std::string_view bytes = text.substr(0, size);
    text.remove_prefix(bytes.size());
    if (name.empty() || name.find('#') != std::string_view::npos) continue;
    const bool is_utf8 = std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7F; });
    if (!is_utf8) continue;
    if (type == 'd') put_values<double>(state, name, bytes);
    if (type == 'f') put_values<float>(state, name, bytes);
    if (type == 'l') put_values<std::int64_t>(state, name, bytes);
    if (type == 'i') put_values<std::int32_t>(state, name, bytes);
    if (type == 'L') put_values<std::uint64_t>(state, name, bytes);
    if (type == 'I') put_values<std::uint32_t>(state, name, bytes);
    if (type == 'B') put_values<std::uint8_t>(state, name, bytes);
    if (type == 'c') put_values<char>(state, name, bytes);
  }
}

}  // namespace olrank::fuzz
