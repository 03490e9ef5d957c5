#pragma once

#include <string>

#include "bench/measurement_file.h"

namespace olrank {

/// Measures operations on a GPU with `device_bench`, which a CUDA build puts next to olrank; its table goes
/// to stderr. Only names that contain `only` are measured. Throws if the program is missing or fails.
MeasurementFile measure_on_gpu(int gpu, const std::string& only);

}  // namespace olrank
