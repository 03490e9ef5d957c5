#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/covariance/dictionary_policy.h"

namespace olrank {

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
