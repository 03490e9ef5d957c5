#pragma once

#include <cstdint>

// Of the twin of cuda/runtime/factorisation.h.
namespace olrank::emulation {

/// From now on, or not any more, all factorisations throw OutOfDeviceMemory.
void let_factorisations_fail(bool fail);
/// From now on, memory has room for fewer rows than these.
void let_factorisations_take(std::int64_t rows);
/// How many matrices have been factorised so far.
int factorisations();

}  // namespace olrank::emulation
