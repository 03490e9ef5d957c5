#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/recipe.h"

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

/// The trials that have a folder there, finished or not, sorted.
std::vector<TrialIdentity> trials_in(const std::filesystem::path& experiment);

/// The file of a trial's folder that says that the trial is finished.
inline constexpr std::string_view kSummaryFile = "summary.json";
bool is_finished(const std::filesystem::path& experiment, const TrialIdentity& identity);

/// The rounds of a recipe's protocol; 0 without any.
std::int64_t rounds_of(const Recipe& recipe);
/// The recipe but its rounds. Trials that differ in nothing else are the same until the shorter one ends.
Recipe without_rounds(Recipe recipe);

}  // namespace olrank
