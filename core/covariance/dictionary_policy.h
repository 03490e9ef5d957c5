#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

// Which observed pairs stand for all of them in the inducing covariance, and when that is decided again:
// one policy for CPU and device.
namespace olrank {

/// Which of some new pairs enter a dictionary, and where they are relative to it.
struct Admission {
  std::vector<std::int64_t> entered;  // their numbers, ascending
  /// Coordinates of all new pairs along the directions that those bring, [pairs × entered].
  std::vector<double> coordinates;
};

/// Every observed pair has a random priority that depends on its number alone, and the dictionary is to
/// have the `budget` pairs of the highest priority: a uniform sample of all observed pairs at any time, of
/// which a new pair needs to know nothing but its own draw. While there is room every pair enters at once.
class DictionaryPolicy {
 public:
  /// Rows that are appended to R before it is factorised again.
  static constexpr std::int64_t kRows = 128;
  /// The least share of the kernels of a pair's documents that the dictionary may leave open for the pair
  /// to enter: below it the factor C would lose its digits, and the pair would add next to nothing. With
  /// 1e-6 some pairs are missed by more than 1e-9 of the widths.
  static constexpr double kLeastShare = 1e-7;

  explicit DictionaryPolicy(std::int64_t budget) : budget_(budget) {}

  std::int64_t budget() const { return budget_; }
  /// The newest pairs whose factors are kept.
  std::int64_t window() const { return kWindow * budget_; }
  /// Pairs that may be kept beyond the window until the oldest ones leave it together.
  std::int64_t slack() const;

  /// The priority of observed pair `number`, from 0.
  static double priority(std::int64_t number);

  /// Which of `magnitudes.size()` new pairs enter a dictionary of `members`, in their order while there is
  /// room. `residual` [pairs × pairs] has the products of their gradients' parts that the dictionary does
  /// not span, and after the call of what is left then; `magnitudes` the sum of both documents' kernels.
  Admission admit(std::int64_t members, std::span<const double> magnitudes,
                  std::span<double> residual) const;
  /// Whether so much of a pair is new.
  bool is_new(double residual, double magnitude) const { return residual > least_share_ * magnitude; }
  /// The share of is_new(). C can lose its digits even so, where pairs are many as directions, each of them
  /// little new; then it is chosen again with a larger share.
  double least_share() const { return least_share_; }
  /// Returns false, with nothing changed, if be_stricter() cannot have led there.
  [[nodiscard]] bool restore_least_share(double share);
  void be_stricter() { least_share_ = std::min(100.0 * least_share_, kMostShare); }
  static constexpr double kMostShare = 1e-3;

  /// Chooses those of the pairs with these priorities, in the order of their age, that are to be in the
  /// dictionary. They come in ascending order.
  std::vector<std::int64_t> choose(std::span<const double> priorities) const;

  /// Whether a covariance may have a factor of `settled` members and so many appended rows.
  static bool rows_fit(std::int64_t members, std::int64_t settled, std::int64_t appended) {
    return settled >= 0 && settled <= members && members - settled <= appended && appended <= kRows;
  }

  /// Shares of 1/λ that are added to I/λ − B⁻¹ where rounding has taken it below zero, one after another.
  /// The widths lose as much of the prior's, which is nothing next to what they keep while B has this many
  /// digits.
  static double next_shift(double shift) { return std::max(1e-15, 10.0 * shift); }
  static constexpr double kMostShift = 1e-11;

  /// Whether a full dictionary is chosen again, `waiting` pairs being chosen and not in it.
  bool replaces(std::int64_t waiting) const { return waiting * kReplacedAtOnce >= budget_; }

  /// Whether pairs that have not entered are projected again on a dictionary that has grown from `before`
  /// to `members` pairs.
  bool projects_again(std::int64_t before, std::int64_t members) const {
    return members > before && (members == budget_ || kGrowth * (members - before) >= members);
  }

 private:
  static constexpr std::int64_t kWindow = 2;          // budgets
  static constexpr std::int64_t kReplacedAtOnce = 5;  // a fifth of the budget
  static constexpr std::int64_t kGrowth = 10;         // by a tenth

  std::int64_t budget_;
  double least_share_ = kLeastShare;
};

}  // namespace olrank
