#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace olrank {

/// How often a user, or the users of an item, mentioned a feature with each sentiment.
struct MentionCount {
  std::int32_t row = 0;
  std::int32_t feature = 0;
  std::int32_t positive = 0;
  std::int32_t negative = 0;
};

/// An entry is what a row says about a feature. A feature that it does not list is ∅, unknown.
struct ProfileEntry {
  std::int32_t feature = 0;
  float value = 0.0F;
};

/// The profiles of users or items as a sparse matrix; features ascend within a row. In a tree whose
/// questions are items, a feature is an item and its value the rating.
struct Profiles {
  std::int64_t features = 0;
  std::vector<std::int64_t> begin{0};
  std::vector<ProfileEntry> entries;

  std::int64_t rows() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::span<const ProfileEntry> row(std::int64_t number) const {
    return {entries.data() + begin[number], entries.data() + begin[number + 1]};
  }
};

/// Empty for ∅.
std::optional<float> profile_value(std::span<const ProfileEntry> profile, std::int32_t feature);

enum class ProfileKind {
  kUser,  // p + n, how much the user cares: Jia, Toward Reliable Decision-making in Information Systems,
          // PhD thesis, UVA 2022, Eq. (4.2.3)
  kItem,  // p − n, how good it is: Eq. (4.2.4)
};

/// Profiles from counts, at most one a row and feature, in any order. Values are divided by the row's
/// number of mentions; the thesis says only that they are normalised.
Profiles make_profiles(std::int64_t rows, std::int64_t features, std::span<const MentionCount> counts,
                       ProfileKind kind);

/// The thresholds T_l at which a tree may split a feature, ascending. Each leaves values on both sides.
struct Thresholds {
  std::vector<std::int64_t> begin{0};
  std::vector<float> values;

  std::span<const float> of(std::int64_t feature) const {
    return {values.data() + begin[feature], values.data() + begin[feature + 1]};
  }
};

inline constexpr int kMostThresholds = 8;

/// At most kMostThresholds equal-frequency cuts of a feature's values; none for a single value.
Thresholds equal_frequency_thresholds(const Profiles& profiles);

/// One threshold for all features.
Thresholds same_threshold(std::int64_t features, float threshold);

/// For each entry of the profiles, how many thresholds of its feature it reaches.
std::vector<std::uint8_t> reached_thresholds(const Profiles& profiles, const Thresholds& thresholds);

}  // namespace olrank
