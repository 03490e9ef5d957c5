#pragma once

#include <string>

#include "apps/bench/measurement_file.h"

namespace olrank {

/// Operations on a GPU: what `device_bench`, the program beside this one in a CUDA build, measures; its own
/// table goes to stderr. `only` is a part of names. Throws where the program is missing or fails.
MeasurementFile measure_on_gpu(int gpu, const std::string& only);

}  // namespace olrank
