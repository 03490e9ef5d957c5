#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/device/visible_gpus.h"

namespace olrank {

/// Why GPU tests cannot run here; empty when they can.
inline std::string gpu_absence() {
  return visible_gpus().absence;
}

inline bool gpu_is_required() {
  const char* required = std::getenv("OLRANK_REQUIRE_GPU");
  return required != nullptr && std::string(required) == "1";
}

}  // namespace olrank

/// No GPU is a normal state: the test says why and skips, unless OLRANK_REQUIRE_GPU=1 makes that a failure.
#define OLRANK_NEEDS_GPU()                                                              \
  if (const std::string absence = ::olrank::gpu_absence(); !absence.empty()) {          \
    if (::olrank::gpu_is_required()) FAIL() << "OLRANK_REQUIRE_GPU=1, but " << absence; \
    GTEST_SKIP() << "no GPU: " << absence;                                              \
  }
