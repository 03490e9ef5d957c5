#pragma once

#include <cstdint>

namespace olrank {

/// Calls of operator new so far, in a test program that lists counted_allocations.cpp among its sources.
std::int64_t allocation_count();

/// Bytes of the heap that operator new has given and delete not taken back, with the allocator's own
/// headers.
std::int64_t allocated_bytes();

/// The most that allocated_bytes() has been since the latest call of restart_most_allocated_bytes().
std::int64_t most_allocated_bytes();
void restart_most_allocated_bytes();

}  // namespace olrank
