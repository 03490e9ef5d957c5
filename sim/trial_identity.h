#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace olrank {

/// A trial of an experiment's matrix; determines its folder.
struct TrialIdentity {
  std::string ranker;
  std::string user;
  std::int64_t fold = 1;
  std::int64_t seed = 1;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes what the default compares with for a pointer
  friend auto operator<=>(const TrialIdentity&, const TrialIdentity&) = default;

  /// trials/<ranker>/<clicks>/fold<k>/seed<s>
  std::filesystem::path path() const;
};

/// The trial whose path() this is; none for anything else.
std::optional<TrialIdentity> identity_of(const std::filesystem::path& path);

/// Everything that determines a trial's result, as named strings. A result or checkpoint with another
/// recipe is never used for this trial.
using TrialRecipe = std::vector<std::pair<std::string, std::string>>;

/// The first difference, to complete a sentence: "the ranker: 'alpha = 0.1' there, 'alpha = 0.2' here";
/// empty for equal recipes.
std::string recipe_difference(const TrialRecipe& there, const TrialRecipe& here);

/// The rounds of a recipe's protocol; 0 without any.
std::int64_t rounds_of(const TrialRecipe& recipe);
/// The recipe but its rounds. Trials that differ in nothing else are the same until the shorter one ends.
TrialRecipe without_rounds(TrialRecipe recipe);

/// The text under a name; empty without one.
const std::string& text_of(const TrialRecipe& recipe, std::string_view name);

std::string recipe_json(const TrialRecipe& recipe);
/// Throws IoError, naming `origin`, for an invalid recipe.
TrialRecipe parse_recipe(const std::string& json, const std::string& origin);

}  // namespace olrank
