#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace olrank {

/// The folder of real data sets; empty where this machine has none. Tests run in the source folder. The
/// program takes OLRANK_DATA_… for settings of [data], so the variable's name begins otherwise.
inline std::string real_data_folder() {
  const char* named = std::getenv("OLRANK_REAL_DATA");
  const std::string folder = named != nullptr ? named : "../shared/data";
  return std::filesystem::exists(folder + "/mq2008/S1.txt.gz") ? folder : "";
}

#define OLRANK_NEED_REAL_DATA()                                                                 \
  if (real_data_folder().empty()) {                                                             \
    GTEST_SKIP() << "the real data sets are not here: set OLRANK_REAL_DATA to the folder that " \
                    "holds mq2008, clueweb09-webis and mslr-sample";                            \
  }                                                                                             \
  static_assert(true)

}  // namespace olrank
