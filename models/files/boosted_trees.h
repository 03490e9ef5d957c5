#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// The trees of a model that LightGBM saved as text or XGBoost as JSON. Its score of a raw document is that
/// program's raw score (LightGBM's raw_score, XGBoost's output_margin): the sum of a leaf of each tree.
class BoostedTrees {
 public:
  /// Whether a file begins as one of these do.
  static bool is_file(std::string_view bytes);
  /// Throws DataError, naming `origin`, for a file that is damaged or has trees of another kind.
  static BoostedTrees parse(std::string_view bytes, const std::string& origin);

  std::int64_t features() const { return features_; }
  /// Returns the names in the file, or none if the program made them up.
  const std::vector<std::string>& feature_names() const { return feature_names_; }
  double score(const float* doc) const;

 private:
  friend class BoostedTreesReader;
  enum class Missing : std::uint8_t { kNone, kZero, kNan };
  /// Documents of at most the threshold go left. A child below 0 is the leaf of number ~child.
  struct Node {
    double threshold = 0.0;
    std::int32_t feature = 0;
    std::int32_t left = 0;
    std::int32_t right = 0;
    Missing missing = Missing::kNan;
    bool missing_goes_left = false;
  };

  std::int64_t features_ = 0;
  std::vector<std::string> feature_names_;
  std::vector<Node> nodes_;
  std::vector<double> leaves_;
  std::vector<std::int32_t> roots_;  // of the trees, like a child
  double offset_ = 0.0;
};

}  // namespace olrank
