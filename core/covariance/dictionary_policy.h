#pragma once

#include <algorithm>
#include <cstddef>
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

/// This step comes after pairs have been taken into an inducing covariance.
enum class DictionaryUpkeep {
  kNothing,
  kProject,  // project what the window holds on the dictionary again
  kChoose,   // choose the dictionary, then as before
};

/// Which observed pairs are in the dictionary of an inducing covariance and in its window of newest pairs,
/// by their numbers among all observed ones: the bookkeeping of a DictionaryPolicy, for CPU and device.
class DictionaryRoll {
 public:
  explicit DictionaryRoll(const DictionaryPolicy& policy) : policy_(policy) {}

  const DictionaryPolicy& policy() const { return policy_; }
  DictionaryPolicy& policy() { return policy_; }
  /// Observed pairs.
  std::int64_t pairs() const { return pairs_; }
  /// The dictionary's pairs, ascending.
  std::span<const std::int64_t> members() const { return members_; }
  /// Priorities of the window's pairs; below 0 for those that would add nothing to the dictionary.
  std::span<const double> priorities() const { return priorities_; }
  /// The dictionary's size when the window was last projected on it.
  std::int64_t projected() const { return projected_; }
  std::int64_t first_of_window() const { return pairs_ - std::ssize(priorities_); }

  /// New pairs: their residuals and magnitudes before DictionaryPolicy::admit(), and what that found.
  void add(std::span<const double> residual, std::span<const double> magnitudes,
           const Admission& admission);
  /// Returns what the latest pairs make necessary. For kChoose, chosen() is what becomes the dictionary.
  DictionaryUpkeep upkeep();
  std::span<const std::int64_t> chosen() const { return chosen_; }
  /// Does what upkeep() finds, by the steps of a covariance: `settle` is for one that needs nothing.
  template <class Choose, class Trim, class Project, class Settle>
  void keep_up(const Choose& choose_again, const Trim& trim_window, const Project& project_again,
               const Settle& settle) {
    const DictionaryUpkeep found = upkeep();
    if (found == DictionaryUpkeep::kChoose) choose_again(chosen());
    trim_window();
    found == DictionaryUpkeep::kNothing ? settle() : project_again();
  }
  /// Makes pairs the dictionary: of those of a block of `numbers`, in ascending order, the ones that
  /// admit(block) lets in.
  template <class Admit>
  void choose_again(std::span<const std::int64_t> numbers, const Admit& admit) {
    next_.clear();
    while (!numbers.empty()) {
      const auto block = numbers.first(std::min(numbers.size(), std::size_t{DictionaryPolicy::kRows}));
      add_choice(block, admit(block));
      numbers = numbers.subspan(block.size());
    }
    end_choice();
  }
  /// Where an observed pair is kept: which one it is of the window or else of the dictionary.
  struct Place {
    bool in_window;
    std::int64_t at;
  };
  Place place_of(std::int64_t number) const;
  /// After rounding has spoiled the dictionary: makes the policy stricter, and returns what the dictionary
  /// is to be chosen from, ascending. These are its own pairs, and while there is room those of the
  /// window that seemed to add nothing, as rounding may have decided that.
  std::vector<std::int64_t> be_stricter();
  /// How many pairs are to leave the window, and forgets as many.
  std::int64_t leaving() const;
  void trim(std::int64_t leaving);
  void set_projected() { projected_ = std::ssize(members_); }

  /// Restores what was saved. Returns false if the numbers cannot belong together.
  bool restore(std::int64_t pairs, std::vector<std::int64_t> members, std::vector<double> priorities,
               std::int64_t projected);

 private:
  /// Fills chosen_. Returns whether the dictionary is replaced: because so many of them are not in it, or
  /// because one of these is about to leave the window, after which it could not enter.
  bool choose();
  void add_choice(std::span<const std::int64_t> block, const Admission& admission);
  void end_choice();
  bool is_leaving(std::int64_t number) const { return number < first_of_window() + leaving(); }

  DictionaryPolicy policy_;
  std::int64_t pairs_ = 0;
  std::vector<std::int64_t> members_;
  std::vector<double> priorities_;
  std::int64_t projected_ = 0;
  std::vector<std::int64_t> chosen_;
  // The latest choice, which takes too long for every round: how many waited then, the oldest of them, and
  // the pairs that were observed. A new pair makes at most one more wait, and one that leaves the window
  // makes none.
  std::int64_t waiting_ = -1;  // -1: not chosen yet
  std::int64_t oldest_waiting_ = 0;
  std::int64_t counted_ = 0;
  std::vector<std::int64_t> next_;
};

}  // namespace olrank
