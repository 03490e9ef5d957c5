#pragma once

// Of the twin of cuda/runtime/factorisation.h.
namespace olrank::emulation {

/// From now on, or not any more, all factorisations throw OutOfDeviceMemory.
void let_factorisations_fail(bool fail);
/// How many matrices have been factorised so far.
int factorisations();

}  // namespace olrank::emulation
