#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/measurement.h"

namespace olrank {

/// Parsing, inspecting, the binary copy, the metrics and ranking by a model, on a generated data set as
/// text or on a plain text file. Files are written to `folder`, which must exist. Bytes are those of the
/// text, the copy and the scores.
std::vector<BenchCase> data_cases(const std::string& source, int threads,
                                  const std::filesystem::path& folder);

}  // namespace olrank
