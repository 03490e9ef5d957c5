#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct XXH3_state_s;

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

  void add(const void* bytes, std::size_t size);
  void add(std::string_view text) { add(text.data(), text.size()); }
  template <class T>
  void add(std::span<const T> values) {
    add(values.data(), values.size_bytes());
  }
  Fingerprint value() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

Fingerprint fingerprint_of(std::string_view bytes);

/// Everything that determines the result of a piece of work, as named strings. A result or checkpoint with
/// another recipe is never used for this one.
using Recipe = std::vector<std::pair<std::string, std::string>>;

/// The first difference, to complete a sentence: "the ranker: 'alpha = 0.1' there, 'alpha = 0.2' here";
/// empty for equal recipes.
std::string recipe_difference(const Recipe& there, const Recipe& here);

/// The text under a name; empty without one.
const std::string& text_of(const Recipe& recipe, std::string_view name);

std::string recipe_json(const Recipe& recipe);
/// Throws IoError, naming `origin`, for an invalid recipe.
Recipe parse_recipe(const std::string& json, const std::string& origin);

}  // namespace olrank
