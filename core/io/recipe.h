#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace olrank {

/// Everything that determines the result of a piece of work, as named strings. A result or checkpoint with
/// another recipe is never used for this one.
using Recipe = std::vector<std::pair<std::string, std::string>>;

/// The first difference, to complete a sentence: "the ranker: 'alpha = 0.1' there, 'alpha = 0.2' here";
/// empty for equal recipes.
std::string recipe_difference(const Recipe& there, const Recipe& here);

/// The text under a name; empty without one.
const std::string& text_of(const Recipe& recipe, std::string_view name);

std::string recipe_json(const Recipe& recipe);
/// Throws IoError, naming `origin`, for an invalid recipe.
Recipe parse_recipe(const std::string& json, const std::string& origin);

}  // namespace olrank
