#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/inspection.h"
#include "core/fair/dataset_groups.h"
#include "core/runtime/execution_context.h"
#include "report/plot.h"

namespace olrank {

nlohmann::ordered_json inspection_json(const InspectedFile& inspected);
/// The text describes a file that could be read.
std::string inspection_text(const InspectedFile& inspected);

/// Two groups have a number where more have a list.
nlohmann::ordered_json one_or_all(const std::vector<double>& values);
nlohmann::ordered_json groups_json(const std::string& path, const GroupSettings& settings,
                                   const GroupRule& rule);
std::string groups_text(const std::string& path, const GroupSettings& settings, const GroupRule& rule);

/// The plane in which a linear function of the features separates grades best: Fisher's discriminant, with
/// a variance of 1 within grades along both axes.
struct Discriminant {
  std::vector<std::array<double, 2>> docs;  // coordinates; higher grades tend to larger ones
  std::array<double, 2> separation{};       // variance between the means of grades, relative to that within
};

/// Takes all documents. Features that never vary have no part in it. Throws InvalidArgument for fewer than
/// three grades, whose means span no plane.
Discriminant linear_discriminant(const Dataset& data, ExecutionContext& context);

/// Documents in their discriminant plane, coloured by grade, and the mean of each grade: Jia and Wang, WWW
/// 2022, Figure 3. Of many documents it shows evenly chosen ones; those far from all others are left out.
Plot discriminant_figure(const Discriminant& discriminant, std::span<const std::uint8_t> grades,
                         const std::string& source);

}  // namespace olrank
