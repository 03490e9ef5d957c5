#pragma once

#include <filesystem>

#include "apps/command.h"

namespace olrank {

/// Shows an experiment's progress until it finishes or a signal arrives. Returns the signal, or 0.
int watch_experiment(const std::filesystem::path& folder, double interval, const OutputFlags& output);

}  // namespace olrank
