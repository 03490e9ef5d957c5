#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "apps/command.h"
#include "jobs/recommending/recommender_run.h"

namespace olrank {

/// A finished training on stdout, as a table or as JSON.
void print_recommender_summary(const nlohmann::ordered_json& summary, const OutputFlags& output);

/// Lines "metric  mean ± half width" of what figures_json() gives.
std::string figures_table(const nlohmann::ordered_json& figures, int columns);

}  // namespace olrank
