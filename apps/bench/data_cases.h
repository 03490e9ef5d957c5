#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/bench/measurement.h"

namespace olrank {

/// Parsing, the binary copy and the metrics, on a generated data set as text. Files go into `folder`, which
/// is there. Bytes are those of the text, of the copy, of the scores.
std::vector<BenchCase> data_cases(const std::string& source, int threads,
                                  const std::filesystem::path& folder);

}  // namespace olrank
