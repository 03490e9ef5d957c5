// The libFuzzer program for the targets of the header OLRANK_CHECKS. The environment's OLRANK_FUZZ_TARGET
// names the one that it attacks.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/runtime/log.h"
#include OLRANK_CHECKS

namespace {
void (*check)(std::string_view) = nullptr;
}  // namespace

/// LibTorch's PyTorchStreamReader keeps 341 bytes of miniz for each archive that its constructor refuses.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:mz_zip_reader_\n";
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  olrank::set_log_sink([](olrank::LogLevel, std::string_view) {});
  const char* name = std::getenv("OLRANK_FUZZ_TARGET");
  for (const auto& target : olrank::fuzz::kTargets) {
    if (name != nullptr && std::string_view(name) == target.name) check = target.check;
  }
  if (check != nullptr) return 0;
  std::fputs("OLRANK_FUZZ_TARGET must be one of", stderr);
  for (const auto& target : olrank::fuzz::kTargets) std::fprintf(stderr, " %s", target.name);
  std::fputs(".\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  check({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
