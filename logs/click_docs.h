#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/io/fingerprint.h"

namespace olrank {

/// Numbers the documents of a log: one of a query is the same wherever its ID is the same.
class ClickDocNumbers {
 public:
  static constexpr std::int32_t kUnknown = -1;

  /// The document's number, and whether it is new.
  std::pair<std::int32_t, bool> add(std::string_view query, std::string_view doc) {
    const auto [known, is_new] =
        numbers_.try_emplace(identity(query, doc), static_cast<std::int32_t>(numbers_.size()));
    return {known->second, is_new};
  }
  std::int32_t find(std::string_view query, std::string_view doc) const {
    const auto known = numbers_.find(identity(query, doc));
    return known == numbers_.end() ? kUnknown : known->second;
  }
  std::int64_t size() const { return std::ssize(numbers_); }

 private:
  struct Hash {
    std::size_t operator()(const Fingerprint& fingerprint) const { return fingerprint.low; }
  };
  static Fingerprint identity(std::string_view query, std::string_view doc) {
    Fingerprinter identity;
    identity.add(query);
    identity.add(std::string_view("\0", 1));
    identity.add(doc);
    return identity.value();
  }

  std::unordered_map<Fingerprint, std::int32_t, Hash> numbers_;
};

}  // namespace olrank
