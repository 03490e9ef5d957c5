#pragma once

#include <cstdint>

#include "core/math/portable_exp.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The parts of at most `part` numbers into which n are cut.
OLRANK_HOST_DEVICE constexpr std::int64_t parts_of(std::int64_t n, std::int64_t part) {
  return (n + part - 1) / part;
}
/// A side of a grid.
constexpr unsigned count_of(std::int64_t n) {
  return static_cast<unsigned>(n);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
