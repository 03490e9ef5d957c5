#include <cstddef>
#include <cstdint>

#include "tests/fuzz/data_checks.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  olrank::set_log_sink([](olrank::LogLevel, std::string_view) {});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  olrank::fuzz::check_dataset_file({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
