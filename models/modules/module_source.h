#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/random/rng_stream.h"
#include "models/modules/module_registry.h"

namespace olrank {

/// Where modules of a request come from: a registered factory, or a TorchScript file that is read once.
class ModuleSource {
 public:
  /// Throws InvalidArgument, with the names, for an unknown one, and for a file that is no module.
  explicit ModuleSource(const ModuleRequest& request);

  /// A module with parameters of its own. What it draws from LibTorch's generator follows from the seed.
  ScoringModule make(std::uint64_t seed) const;
  /// The code of a module from a file; empty for others.
  const std::string& code() const { return code_; }
  /// Returns what the file holds; null for others.
  const std::shared_ptr<const std::string>& file() const { return file_; }

 private:
  std::function<ScoringModule()> make_;
  std::string code_;
  std::shared_ptr<const std::string> file_;
};

/// A key as the seed of LibTorch's generator, and back.
inline std::uint64_t seed_of_key(PhiloxKey key) {
  return std::uint64_t{key.word[1]} << 32U | key.word[0];
}
inline PhiloxKey key_of_seed(std::uint64_t seed) {
  return {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)}};
}

}  // namespace olrank
