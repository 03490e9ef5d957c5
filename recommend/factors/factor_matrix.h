#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/io/state_archive.h"
#include "core/math/host_device.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "core/settings/schema.h"
#include "recommend/reviews.h"

namespace olrank {

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

  /// Starts uniform in [0, scale); row r depends on the seed, the part of the model and r alone.
  void fill_uniform(std::uint64_t seed, std::uint64_t part, double scale);
  void fill_normal(std::uint64_t seed, std::uint64_t part, double deviation);

  /// gradient [width] = 2 · penalty / rows · row: of a penalty on squares, as a mean over rows.
  void start_gradient(std::int64_t number, double penalty, float* gradient) const;

  /// They are read into a matrix of the same shape.
  void fields(StateFields& state, std::string_view name, bool with_squares);

 private:
  template <class Draw>
  void fill(std::uint64_t seed, std::uint64_t part, const Draw& draw);
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
/// chosen by validation on the generator's default reviews, docs/evidence/RECOMMEND.md.
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

/// How many blocks so many things make; the last one may be shorter.
constexpr std::int64_t blocks_of(std::int64_t count, std::int64_t block) {
  return (count + block - 1) / block;
}

/// (i; j, l) of D_i: user i prefers item j to item l.
struct ItemPair {
  std::int32_t user = 0;
  std::int32_t winner = 0;
  std::int32_t loser = 0;
};

/// Draws pairs of D_i = {(j, l): A_ij > A_il, or j reviewed by i and l not}. Jia, PhD thesis, UVA 2022, Eq.
/// (4.1.4). Pair s of N takes its winner from the s-th of N equal parts of all reviews in the order of
/// users, so that the pairs of a user are neighbours and every review is drawn as often; losers are
/// uniform.
class PairDraws {
 public:
  explicit PairDraws(const RatingRows& by_user, std::int64_t items);

  std::int64_t reviews() const { return std::ssize(users_); }

  /// Pairs [begin, begin + pairs.size()) of the `count` of an iteration; begin is a multiple of kBlock. A
  /// user who has reviewed nearly all items at least as high gets a pair of equal items, without effect.
  void draw(PhiloxKey key, std::uint32_t iteration, std::int64_t begin, std::int64_t count,
            std::span<ItemPair> pairs) const;

  static constexpr std::int64_t kBlock = 256;

 private:
  const RatingRows& by_user_;
  std::int64_t items_;
  std::vector<std::int32_t> users_;  // of each review, in the order of by_user_
};

/// Which samples of a batch belong to each row, in the order of the samples: sums over them are the same on
/// any number of threads. Samples of row −1 belong to none.
class RowIndex {
 public:
  void build(std::span<const std::int32_t> row_of_sample, std::int64_t rows);

  std::span<const std::int32_t> samples_of(std::int64_t row) const {
    return {samples_.data() + ends_[row], static_cast<std::size_t>(ends_[row + 1] - ends_[row])};
  }

 private:
  std::vector<std::int32_t> ends_;
  std::vector<std::int32_t> samples_;
};

/// δ = −weight · σ(−z) for the differences z of the scores of winners and losers, and the sum of −ln σ(z).
/// Jia, PhD thesis, UVA 2022, Eq. (4.1.9), the term of λ_B.
double pair_slopes(std::span<const float> differences, double weight, std::span<float> slopes);

/// One row x ≥ 0 of a non-negative factorisation: minimises Σ_o w_o (t_o − f_o · x)² + λ ‖x‖² over what was
/// added, by coordinate descent on the normal equations. Cichocki, Phan, "Fast local algorithms for large
/// scale nonnegative matrix and tensor factorizations", IEICE 2009.
class NonnegativeRow {
 public:
  explicit NonnegativeRow(std::int64_t size) : gram_(size * size), right_(size) {}

  void clear();
  /// `f` may be shorter than the row; the rest counts as 0.
  void add(std::span<const float> f, double target, double weight);
  /// Starts from x and improves it.
  void solve(double penalty, std::span<float> x) const;

 private:
  std::vector<double> gram_;  // Σ w f fᵀ, the upper triangle
  std::vector<double> right_;
};

/// Observations of the rows of a matrix: products with `columns` columns of the given matrix.
struct ObservedRows {
  const RatingRows* rows;
  const FactorMatrix* given;
  std::int64_t columns;
  double weight;
};

/// Solves each row of a matrix by itself, from where it is.
void fit_rows(ExecutionContext& context, FactorMatrix& fitted, double penalty,
              const std::vector<ObservedRows>& observed);

}  // namespace olrank
