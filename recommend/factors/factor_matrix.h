#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/math/philox.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/vector_clones.h"
#include "core/settings/schema.h"

namespace olrank {

class StateReader;
class StateWriter;

/// Rows are padded to this many columns, of which the last are 0 and stay 0: loops have whole vectors.
inline constexpr std::int64_t kFactorLanes = 16;

inline std::int64_t padded_width(std::int64_t columns) {
  return (columns + kFactorLanes - 1) / kFactorLanes * kFactorLanes;
}

/// Rows of latent factors with AdaGrad's sums of squared gradients.
struct FactorMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t width = 0;        // padded columns
  AlignedVector<float> values;   // rows × width
  AlignedVector<float> squares;  // the same, of a training only

  FactorMatrix() = default;
  /// Zeros.
  FactorMatrix(std::int64_t row_count, std::int64_t column_count);

  float* row(std::int64_t number) { return values.data() + number * width; }
  const float* row(std::int64_t number) const { return values.data() + number * width; }

  /// Uniform in [0, scale); row r depends on the key and r alone.
  void fill_uniform(PhiloxKey key, double scale);
  void fill_normal(PhiloxKey key, double deviation);

  void save(StateWriter& state, std::string_view name, bool with_squares) const;
  /// Into a matrix of the same shape.
  void load(StateReader& state, std::string_view name, bool with_squares);
};

/// The scalar product over a multiple of kFactorLanes columns, in fixed lanes.
OLRANK_ALWAYS_INLINE float product_of_rows(const float* a, const float* b, std::int64_t width) {
  float lanes[kFactorLanes] = {};
  for (std::int64_t begin = 0; begin < width; begin += kFactorLanes) {
    for (std::int64_t lane = 0; lane < kFactorLanes; ++lane)
      lanes[lane] += a[begin + lane] * b[begin + lane];
  }
  for (std::int64_t lane = 0; lane < 8; ++lane) lanes[lane] += lanes[lane + 8];
  for (std::int64_t lane = 0; lane < 4; ++lane) lanes[lane] += lanes[lane + 4];
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/// Calls product_of_rows(), which stays out of the caller.
float row_product(const float* a, const float* b, std::int64_t width);

/// scores[j] = direction · row j, for as many rows as there are scores.
void score_rows(const float* direction, const FactorMatrix& matrix, std::span<float> scores);

/// AdaGrad: Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic
/// optimization", JMLR 2011. s ← s + g², θ ← θ − rate · g/√(s + tiny), then max(θ, 0) if `non_negative`.
void adagrad_step(float rate, bool non_negative, const float* gradient, float* squares, float* theta,
                  std::int64_t count);

/// Factorisations: mter, mter-s, mter-sa, efm, bprmf and nmf. Which kind reads which is in the table of
/// kinds. Jia, PhD thesis, UVA 2022, prints no values of MTER's; c, d, the cores' step, λ_F and λ_B were
/// chosen by validation on the generator's default reviews, docs/RECOMMEND.md.
struct FactorSettings {
  std::int64_t dimension = 20;
  std::int64_t user_dimension = 15;     // a
  std::int64_t item_dimension = 15;     // b
  std::int64_t feature_dimension = 15;  // c
  std::int64_t phrase_dimension = 15;   // d
  double learning_rate = 0.1;
  double core_learning_rate = 0.0001;
  double factor_penalty = 0.3;        // λ_F
  double core_penalty = 0.01;         // λ_G
  double pair_weight = 2.0;           // λ_B
  std::int64_t batch = 4096;          // entries drawn from each tensor
  std::int64_t pairs = 24576;         // N_BPR
  double penalty = 0.1;               // λ of nmf, efm and bprmf
  double user_feature_weight = 0.05;  // λ_x of efm
  double item_feature_weight = 0.05;  // λ_y of efm
  std::int64_t hidden_dimension = 20;
  std::int64_t matched_features = 15;
  double feature_share = 0.85;

  static const Schema& schema();
};

}  // namespace olrank
