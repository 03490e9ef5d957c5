#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "recommend/factors/factor_matrix.h"
#include "recommend/recommender.h"
#include "recommend/reviews.h"

namespace olrank {

/// Whose vectors a matrix of MTER holds.
enum class MterSide { kUser = 0, kItem = 1, kPhrase = 2, kFeature = 3 };
inline constexpr std::size_t kMterSides = 4;

/// The three tensors, X̃, Y^U and Y^I, with whose vectors their rows and columns meet.
inline constexpr std::size_t kMterTasks = 3;
inline constexpr std::array<MterSide, kMterTasks> kRowSide = {MterSide::kUser, MterSide::kUser,
                                                              MterSide::kItem};
inline constexpr std::array<MterSide, kMterTasks> kColumnSide = {MterSide::kItem, MterSide::kPhrase,
                                                                 MterSide::kPhrase};
constexpr bool task_has(std::size_t task, MterSide side) {
  return side == MterSide::kFeature || kRowSide[task] == side || kColumnSide[task] == side;
}

/// How the tensors are put together from vectors. Jia, PhD thesis, UVA 2022, §4.1: kTucker is MTER, with a
/// core for each tensor; kShared is MTER-SA, the canonical decomposition with all vectors shared; kSplit is
/// MTER-S, where each vector is a shared one plus one of the tensor's own.
enum class MterForm { kTucker, kShared, kSplit };

/// All parameters.
struct MterParameters {
  MterForm form = MterForm::kTucker;
  std::array<FactorMatrix, kMterSides> shared;
  /// kSplit has the tensors' own vectors, and the sums, which the tensors meet. Empty where a tensor does
  /// not meet a side.
  std::array<std::array<FactorMatrix, kMterSides>, kMterTasks> own;
  std::array<std::array<FactorMatrix, kMterSides>, kMterTasks> sums;
  /// kTucker has G1, G2, G3 as [feature dimension][row dimension][column dimension], each of the common
  /// width.
  std::array<FactorMatrix, kMterTasks> cores;

  MterParameters() = default;
  /// Zeros.
  MterParameters(MterForm form, const FactorSettings& settings, const ReviewCounts& counts);

  std::int64_t width() const { return shared[0].width; }
  std::int64_t columns(MterSide side) const { return shared[static_cast<std::size_t>(side)].columns; }
  std::int64_t rows(MterSide side) const { return shared[static_cast<std::size_t>(side)].rows; }

  const FactorMatrix& met(std::size_t task, MterSide side) const {
    const auto place = static_cast<std::size_t>(side);
    return form == MterForm::kSplit ? sums[task][place] : shared[place];
  }
  /// Writes shared + own of one row into the sums.
  void add_up(std::size_t task, MterSide side, std::int64_t row);
  void add_up_all();

  /// Uniform starts, scaled so that the first predictions are about the middle of the scale. Cores start
  /// near a diagonal: from uniform ones, all rows look alike for long.
  void start(std::uint64_t seed, double highest_rating);

  void fields(StateFields& state, bool with_squares);

  void start_core(std::size_t task, std::uint64_t seed, std::uint64_t part);

  /// The width that all sides share.
  static std::int64_t common_width(MterForm form, const FactorSettings& settings);
  static std::int64_t bytes(MterForm form, const FactorSettings& settings, const ReviewCounts& counts,
                            bool with_squares);
};

/// A tensor as a list of its entries, by feature, then row, then column.
struct SparseTensor {
  std::vector<std::int32_t> row;
  std::vector<std::int32_t> column;
  std::vector<std::int32_t> feature;
  std::vector<float> value;

  std::int64_t size() const { return std::ssize(value); }
};

/// The three tensors of MTER. Jia, PhD thesis, UVA 2022, §4.1.2. Entries that are 0 in the paper are
/// missing here: they mean "not mentioned".
struct MterTensors {
  SparseTensor preferences;   // X̃: user, item, feature; the last feature is the overall rating
  SparseTensor user_phrases;  // Y^U: user, phrase, feature
  SparseTensor item_phrases;  // Y^I: item, phrase, feature
};

MterTensors make_mter_tensors(const TrainingData& data);

/// X̃_ijk of the sum ŝ of sentiments: 1 + (N − 1)/(1 + e^{−ŝ}). Eq. (4.1.1).
double preference_value(double sentiments, double highest_rating);
/// Y of how often a phrase was used as praise: 1 + (N − 1)(2/(1 + e^{−Γ}) − 1). Eqs. (4.1.6), (4.1.7).
double phrase_value(double uses, double highest_rating);

}  // namespace olrank
