#include "core/feedback/doc_number.h"

#include "core/io/fingerprint.h"

namespace olrank {

std::int64_t doc_number(std::string_view query, std::span<const float> inputs, std::string_view name) {
  Fingerprinter fingerprinter;
  const auto size = static_cast<std::uint64_t>(query.size());
  fingerprinter.add(&size, sizeof size);
  fingerprinter.add(query);
  fingerprinter.add(inputs);
  fingerprinter.add(name);
  return static_cast<std::int64_t>(fingerprinter.value().low >> 1);
}

std::int64_t name_number(std::string_view name) {
  Fingerprinter fingerprinter;
  fingerprinter.add(name);
  return static_cast<std::int64_t>(fingerprinter.value().low >> 1);
}

}  // namespace olrank
