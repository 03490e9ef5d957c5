#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace olrank {

/// A 128-bit hash of contents, the same on every machine.
struct Fingerprint {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  std::string hex() const;  // 32 lower-case digits, the canonical XXH128 form
};

/// Incremental XXH3-128; the result does not depend on how the bytes are split into pieces.
class Fingerprinter {
 public:
  Fingerprinter();
  ~Fingerprinter();
  Fingerprinter(Fingerprinter&&) noexcept;
  Fingerprinter& operator=(Fingerprinter&&) noexcept;

  void add(const void* bytes, std::size_t size);
  void add(std::string_view text) { add(text.data(), text.size()); }
  template <class T>
  void add(std::span<const T> values) {
    add(values.data(), values.size_bytes());
  }
  Fingerprint value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Fingerprint fingerprint_of(std::string_view bytes);

}  // namespace olrank
