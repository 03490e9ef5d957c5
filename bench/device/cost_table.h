#pragma once

#include <string>

namespace olrank {

/// The table of docs/evidence/GPU-RECORD.md: what each operation of the engine needs at least, by the
/// counts of its case, how long that takes an H200 at the rates of its data sheet, and where it is computed
/// and why. InvalidArgument if an operation has no decision.
std::string cost_table();

}  // namespace olrank
