#include "core/io/fingerprint.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace olrank {

struct Fingerprinter::State {
  XXH3_state_t* xxh3 = XXH3_createState();
  State() {
    if (xxh3 == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh3);
  }
  ~State() { XXH3_freeState(xxh3); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Fingerprinter::Fingerprinter() : state_(std::make_unique<State>()) {}
Fingerprinter::~Fingerprinter() = default;
Fingerprinter::Fingerprinter(Fingerprinter&&) noexcept = default;
Fingerprinter& Fingerprinter::operator=(Fingerprinter&&) noexcept = default;

void Fingerprinter::add(const void* bytes, std::size_t size) {
  if (size > 0) XXH3_128bits_update(state_->xxh3, bytes, size);
}

Fingerprint Fingerprinter::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh3);
  return Fingerprint{hash.high64, hash.low64};
}

Fingerprint fingerprint_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return Fingerprint{hash.high64, hash.low64};
}

std::string Fingerprint::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace olrank
