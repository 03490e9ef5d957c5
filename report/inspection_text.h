#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/data/inspection.h"
#include "core/fair/dataset_groups.h"

namespace olrank {

nlohmann::ordered_json inspection_json(const InspectedFile& inspected);
/// The text describes a file that could be read.
std::string inspection_text(const InspectedFile& inspected);

/// Two groups have a number where more have a list.
nlohmann::ordered_json one_or_all(const std::vector<double>& values);
nlohmann::ordered_json groups_json(const std::string& path, const GroupSettings& settings,
                                   const GroupRule& rule);
std::string groups_text(const std::string& path, const GroupSettings& settings, const GroupRule& rule);

}  // namespace olrank
