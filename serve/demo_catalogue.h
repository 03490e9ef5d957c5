#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace olrank {

/// The page of `olrank demo` shows these: queries with documents, and how each of the simulated people
/// grades these, from 0 to 4.
struct DemoCatalogue {
  nlohmann::json json;
  std::int64_t features = 0;
  std::int64_t tastes = 0;
};

/// Generated products of three categories, and three people.
DemoCatalogue product_catalogue(std::uint64_t seed);

/// The first queries of a LETOR file with their first documents, and one person, whose taste is the file's
/// grades. Throws InvalidArgument for a file without a list to order.
DemoCatalogue letor_catalogue(const std::string& file);

}  // namespace olrank
