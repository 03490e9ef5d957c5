#pragma once

#include <cstdint>

// This belongs to the twin of cuda/runtime/factorisation.h.
namespace olrank::emulation {

/// From now on, or not any more, all factorisations throw OutOfDeviceMemory.
void let_factorisations_fail(bool fail);
/// From now on, memory has room for fewer rows than these.
void let_factorisations_take(std::int64_t rows);
/// How many matrices have been factorised so far.
int factorisations();
/// How often a factor has solved for all columns of a call.
int solves();

}  // namespace olrank::emulation
