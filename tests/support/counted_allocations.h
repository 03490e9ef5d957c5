#pragma once

#include <cstdint>

namespace olrank {

/// Calls of operator new so far, in a test program that lists counted_allocations.cpp among its sources.
std::int64_t allocation_count();

}  // namespace olrank
