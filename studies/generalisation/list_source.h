#pragma once

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"
#include "core/math/philox.h"

namespace olrank {

/// The noise makes the grades of a generated query differ from the order of w°.
enum class PreferenceNoise {
  kDocument,  // each document's own error: long lists average it away
  kQuery,     // each query's own direction of preference: no list is long enough to average it away
  kLabel,     // a grade is replaced by one drawn without looking at the document
};

/// How rows look.
enum class RowKind {
  kSphere,  // ‖x‖₂ = R, in a uniform direction
  kSigns,   // entries ±1, so that ‖x‖_∞ = 1 and ‖x‖₂ = √d
  kGraded,  // ‖x‖₂ = R, and ⟨w°, x⟩ = grade − 2 exactly: without noise ListNet's best loss is the entropy
};

struct ListRecipe {
  std::int64_t docs = 10;      // m
  std::int64_t features = 20;  // d
  double row_norm = 1.0;       // R; not for kSigns
  RowKind rows = RowKind::kSphere;
  PreferenceNoise noise = PreferenceNoise::kQuery;
  double noise_share = 0.3;    // of the variance of relevance; of the labels for kLabel
  std::int64_t relevant = 10;  // features that matter, for kSigns
  static constexpr int kMostGrade = 4;
};

/// Queries from a distribution, numbered without end. Query q is the same however many are asked for at
/// once, in any order, on any thread.
class ListSource {
 public:
  ListSource(const ListRecipe& recipe, PhiloxKey key) : recipe_(recipe), key_(key) {}

  const ListRecipe& recipe() const { return recipe_; }
  Dataset queries(std::int64_t first, std::int64_t count) const;

 private:
  void make_query(std::int64_t query, float* values, std::uint8_t* grades) const;
  void make_row(std::int64_t query, std::int64_t doc, const std::vector<double>& direction, float* row,
                std::uint8_t& grade) const;

  ListRecipe recipe_;
  PhiloxKey key_;
};

/// The w° of the recipe: what relevance follows without noise.
std::vector<double> true_direction(const ListRecipe& recipe);

/// ⟨e°, x⟩ of a kGraded row is this times (grade − 2) times R, so that ‖w°‖₂ = 1/(kGradeStep R).
inline constexpr double kGradeStep = 0.4;

/// Lists back to back: `offsets` has the documents before each, and all of them at its end.
Dataset dataset_with_offsets(std::vector<float> values, std::vector<std::uint8_t> grades,
                             std::vector<std::int64_t> offsets, std::int64_t features);
/// Lists of `docs` documents each.
Dataset dataset_of_lists(std::vector<float> values, std::vector<std::uint8_t> grades, std::int64_t docs,
                         std::int64_t features);
/// The first queries, in the same memory.
Dataset first_queries(const Dataset& data, std::int64_t count);
/// The queries of these numbers, in this order; a number may come more than once.
Dataset chosen_queries(const Dataset& data, const std::vector<std::int64_t>& numbers);

}  // namespace olrank
