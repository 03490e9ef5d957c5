#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/synthetic_source.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// A smooth hill on [0, 1]: (1 − ((t − centre)/half_width)²)² within half_width of its centre, 0 beyond.
struct SyntheticBump {
  double centre = 0.5;
  double half_width = 0.45;
  double mean = 0.0;       // over uniform t
  double deviation = 1.0;  // over uniform t

  double at(double t) const {
    const double u = (t - centre) / half_width;
    const double hill = 1.0 - u * u;
    return hill > 0.0 ? hill * hill : 0.0;
  }
};

inline constexpr int kSyntheticSignals = 8;

/// The place of a document in each of the quantities that its relevance depends on, uniform on [0, 1];
/// 0 where the document misses it.
using SyntheticSignals = std::array<double, kSyntheticSignals>;

/// How a data set's relevance comes about. All of it follows from family, features, noise, nonlinearity and
/// seed; the numbers of queries and documents have no part in it, so that a larger set begins with a
/// smaller one.
struct SyntheticRelevance {
  std::array<double, 3> linear_weights{};  // of signals 0, 1, 2
  std::array<SyntheticBump, 3> bumps{};    // of signals 3, 4, 5
  std::array<double, 3> bump_weights{};
  double product_weight = 0.0;  // of signals 6 × 7
  double present = 1.0;         // probability that a document has a signal

  SyntheticSignals draw(RngStream& stream) const;
  /// Noise-free, with mean 0 and variance 1 over documents that have all signals.
  double at(const SyntheticSignals& signals) const;
};

/// Vectors of norm 1 like embeddings of texts: three quarters of their variance lie along 128 random axes,
/// a share ∝ 1/k along axis k, and the rest is the same in all directions. Three tenths of what lies along
/// the axes are common to the documents of a query. Relevance is the sum of the similarities to some texts.
struct SyntheticVectors {
  std::vector<double> axes;       // [kAxes × size], as long as the standard deviation along them
  std::vector<double> texts;      // [subspace × size] vectors drawn as those of documents are
  std::vector<double> relevance;  // [size] their sum, scaled so that x · relevance has variance 1

  static constexpr int kAxes = 128;
  static constexpr double kRest = 0.25;
  static constexpr double kShare = 0.5;  // of the variance of relevance

  void draw(RngStream& of_query, RngStream& of_doc, std::span<double> vector) const;
};

enum class SyntheticKind {
  kRatio,     // in [0, 1]
  kScore,     // negative, like a logarithm of a likelihood
  kSkewed,    // in [0, 1], most of it near 0
  kCount,     // whole numbers with a heavy tail
  kBinary,    // 0 or 1
  kConstant,  // the same for all documents of a query
};

/// One quantity measured at `streams` places (body, anchor, title, url, whole document): columns side by
/// side that correlate, the last one without the others' distortion.
struct SyntheticGroup {
  SyntheticKind kind = SyntheticKind::kRatio;
  std::int64_t first_column = 0;
  int signal = -1;       // which signal it shows, or -1
  double present = 1.0;  // probability that a document has it
};

/// Parts 0, 1 and 2 are training, validation and test; this one holds what they share.
inline constexpr std::uint64_t kSyntheticPlanPart = 100;
/// Parts of vectors come after this one, their plan itself included.
inline constexpr std::uint64_t kSyntheticVectorPart = 200;
/// A query's own stream, beside its documents' ones.
inline constexpr std::uint32_t kSyntheticQueryPlace = 0xFFFFFFFFU;
PhiloxKey key_of_part(const SyntheticSource& source, std::uint64_t part);

struct SyntheticPlan {
  SyntheticSource source;
  SyntheticRelevance relevance;
  std::vector<SyntheticGroup> groups;
  int streams = 1;                // columns of a group
  std::int64_t first_single = 0;  // columns from here on stand alone: properties of the document
  double single_present = 1.0;    // probability that a document has one of them
  bool has_missing = false;       // 0 means missing, and no other value is 0
  SyntheticVectors vectors;
  std::array<double, 4> grade_bounds{};  // of y = relevance + query effect + noise

  // A document is in group A where ρ (y − mean)/deviation + √(1 − ρ²) e, with e standard normal, is above
  // the bound.
  double group_correlation = 0.0;  // ρ
  double group_bound = 0.0;
  double y_mean = 0.0;
  double y_deviation = 1.0;

  bool in_group_a(double y, double e) const {
    return group_correlation * (y - y_mean) / y_deviation +
               std::sqrt(1.0 - group_correlation * group_correlation) * e >
           group_bound;
  }

  /// The relevance of a document, with `of_vector` being vector · vectors.relevance.
  double relevance_of(const SyntheticSignals& signals, double of_vector) const {
    const double own = relevance.at(signals);
    constexpr double kShare = SyntheticVectors::kShare;
    return source.has_embedding() ? std::sqrt(1.0 - kShare) * own + std::sqrt(kShare) * of_vector : own;
  }

  static constexpr double kQueryEffect = 0.35;  // standard deviation, added to all documents of a query

  int grade_of(double y) const {
    int grade = 0;
    while (grade < 4 && y > grade_bounds[grade]) ++grade;
    return grade;
  }
};

SyntheticPlan make_synthetic_plan(const SyntheticSource& source);

/// Uniform in (0, 1) from 32 bits: cheap, and never an end of the interval.
inline double synthetic_uniform(RngStream& stream) {
  return (static_cast<double>(stream.next_bits()) + 0.5) * 0x1.0p-32;
}

/// A known scoring function h, and documents whose score is known: of synth:realisable. h is linear,
/// θ*·x, or a network with ReLUs and without biases. A document of grade g is a point of the unit sphere
/// with h(x) = (g − (V − 1)/2) · gap, V being the documents of a query.
class RealisableTarget {
 public:
  explicit RealisableTarget(const SyntheticSource& source);

  double at(std::span<const double> x) const;
  /// h of the documents of a grade.
  double level(std::int64_t grade) const;
  /// A document of the grade: where the arc from a uniform point of the sphere to a point with an extreme
  /// score crosses the grade's level.
  void draw(RngStream& stream, std::int64_t grade, std::span<double> x) const;

 private:
  double unscaled(std::span<const double> x) const;

  SyntheticSource source_;
  std::vector<double> hidden_;  // [units × features]; θ* where there are no units
  double scale_ = 1.0;
  std::vector<double> lowest_;   // points of the sphere whose scores are
  std::vector<double> highest_;  // beyond all levels
};

}  // namespace olrank
