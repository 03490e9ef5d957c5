#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/state_archive.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// A group of documents that exposure is shared between; C and those behind it have the next numbers.
enum class DocGroup : std::uint8_t { kA = 0, kB = 1 };

constexpr std::size_t kMostGroups = 6;
constexpr std::size_t kMostPairs = kMostGroups * (kMostGroups - 1) / 2;

constexpr std::size_t index_of(DocGroup group) {
  return static_cast<std::size_t>(group);
}

constexpr char letter_of(DocGroup group) {
  return static_cast<char>('A' + index_of(group));
}

/// None unless the text is the letter of one of the first `groups`.
template <class Text>
constexpr std::optional<DocGroup> group_named(const Text& text, std::size_t groups) {
  if (text.size() != 1 || text[0] < 'A' || text[0] >= static_cast<char>('A' + groups)) return std::nullopt;
  return static_cast<DocGroup>(text[0] - 'A');
}

/// "A or B", "A, B or C", …
inline std::string letters_of(std::size_t groups) {
  std::string text;
  for (std::size_t group = 0; group < groups; ++group) {
    if (group > 0) text += group + 1 == groups ? " or " : ", ";
    text += letter_of(static_cast<DocGroup>(group));
  }
  return text;
}

/// A figure of each two groups, in the order (A, B), (A, C), (B, C), (A, D), …
using PairFigures = std::array<double, kMostPairs>;

/// The place of two groups among pairs; `first` comes before `second`.
constexpr std::size_t pair_of(std::size_t first, std::size_t second) {
  return second * (second - 1) / 2 + first;
}

/// How exposure is counted and how far apart the groups may get. Jia, "Toward Reliable Decision-making in
/// Information Systems", PhD thesis, University of Virginia, 2022, Eq. (3.1.1): a system is fair iff
/// |UF_t| ≤ ε in every round, where UF_t = Σ_{s ≤ t} (Exposure_s(A) − β · Exposure_s(B)). Among more
/// than two groups each two have an UF, with a β of their own; β_gh = β_Ah / β_Ag makes these transitive.
struct ExposureRule {
  std::vector<double> examination;  // P(1), …, P(k): how likely each rank is examined
  std::vector<double> beta = {1.0};  // β > 0: exposure of A per exposure of B, of C, … that counts as fair
  double epsilon = 1.0;              // ε ≥ 0, in the units of `examination`

  std::size_t groups() const { return beta.size() + 1; }
  std::size_t pairs() const { return groups() * beta.size() / 2; }
  /// β_gh, for g before h.
  double beta_of(std::size_t first, std::size_t second) const {
    return first == 0 ? beta[second - 1] : beta[second - 1] / beta[first - 1];
  }
  /// The exposure of a document at `rank`, from 0; none beyond the last P.
  double exposure_at(std::size_t rank) const { return rank < examination.size() ? examination[rank] : 0.0; }
  /// Adds what the exposure of a group's document adds to the unfairness of its pairs.
  void add(DocGroup group, double exposure, PairFigures& unfairness) const {
    const std::size_t one = index_of(group);
    for (std::size_t other = 0; other < groups(); ++other) {
      if (other > one) unfairness[pair_of(one, other)] += exposure;
      if (other < one) unfairness[pair_of(other, one)] -= beta_of(other, one) * exposure;
    }
  }
  /// UF of the pair that is farthest apart.
  double farthest(const PairFigures& unfairness) const {
    double found = unfairness[0];
    for (std::size_t pair = 1; pair < pairs(); ++pair) {
      if (std::abs(unfairness[pair]) > std::abs(found)) found = unfairness[pair];
    }
    return found;
  }

  friend bool operator==(const ExposureRule&, const ExposureRule&) = default;
};

/// A ranker may know this about fairness when it makes a list.
struct FairRound {
  std::span<const DocGroup> groups;    // [V] by document
  const ExposureRule* rule = nullptr;  // never null
  PairFigures unfairness{};            // UF_{t−1}
};

/// The exposure of the groups in all lists so far.
class ExposureLedger {
 public:
  /// Adds a list, with each rank's P as its exposure. `groups` are by document.
  void observe(const ExposureRule& rule, std::span<const DocGroup> groups,
               std::span<const std::int32_t> shown);
  /// Adds a list, of which the user examined what `examined` says: exposure 1 each.
  void observe_examined(const ExposureRule& rule, std::span<const DocGroup> groups,
                        std::span<const std::int32_t> shown, std::span<const std::uint8_t> examined);

  const PairFigures& unfairness() const { return unfairness_; }  // UF_t
  double of(DocGroup group) const { return exposure_[index_of(group)]; }
  std::int64_t rounds() const { return rounds_; }
  /// Rounds so far after which |UF| was at most ε.
  std::int64_t fair_rounds() const { return fair_rounds_; }

  void fields(StateFields& state, const ExposureRule& rule);

 private:
  void end_round(const ExposureRule& rule, const PairFigures& added);

  PairFigures unfairness_{};
  std::array<double, kMostGroups> exposure_{};
  std::int64_t rounds_ = 0;
  std::int64_t fair_rounds_ = 0;
};

/// Proportional control adds λ_c · err_t(G) to the scores of a group. Morik, Singh, Hong and Joachims,
/// "Controlling fairness and bias in dynamic learning-to-rank", SIGIR 2020, Section 5, with merits whose
/// ratios are β, that of B being 1, and exposures E summed over a group: err(G) = max over groups H of
/// E(H)/merit(H) − E(G)/merit(G), or 0. A group with too little exposure gets more. With two groups err(A)
/// = max(0, −UF/β) and err(B) = max(0, UF/β).
inline double fair_control(const FairRound& fair, double gain, DocGroup group) {
  const ExposureRule& rule = *fair.rule;
  const std::size_t one = index_of(group);
  double error = 0.0;
  for (std::size_t other = 0; other < rule.groups(); ++other) {
    if (other == one) continue;
    const auto [first, second] = std::minmax(one, other);
    const double merit = first == 0 ? rule.beta.front() : rule.beta.front() / rule.beta[first - 1];
    const double lead_of_first = fair.unfairness[pair_of(first, second)] / merit;
    error = std::max(error, one == first ? -lead_of_first : lead_of_first);
  }
  return gain * error;
}

/// The groups of the places of a list, as a number to the base of their count: of two groups, bit r is set
/// where place r, from 0, is for group A.
using TemplatePattern = std::uint32_t;

/// All 2^k templates of one length for two groups: Ω^k of Jia, PhD thesis, University of Virginia, 2022,
/// Section 3.1.
class TemplateTable {
 public:
  /// 2^12 templates are cheap to look through; each further place doubles them.
  static constexpr int kMostPlaces = 12;

  TemplateTable(const ExposureRule& rule, int length);

  int length() const { return length_; }
  TemplatePattern size() const { return TemplatePattern{1} << length_; }
  /// A list of this template adds this gain to the unfairness, Eq. (3.1.2).
  double gain(TemplatePattern pattern) const { return gains_[pattern]; }
  static int needed_of_a(TemplatePattern pattern) { return std::popcount(pattern); }

 private:
  int length_;
  std::vector<double> gains_;
};

/// A list of a template.
struct FairChoice {
  TemplatePattern pattern = 0;
  int length = 0;
  std::int64_t violated = 0;    // certain orders, by the whole list
  double unfairness = 0.0;      // UF_t, of the groups farthest apart, if every rank is examined as expected
  bool realisable = true;       // whether it is within ε
  std::int64_t templates = 0;   // compared
  bool search_gave_up = false;  // a better list may have been missed
};

/// Decides by fewer violations, then by the smaller |UF_t|, then by a coin of the round. `key` is the
/// trial's key of Purpose::kTemplate.
bool is_better(const FairChoice& candidate, const FairChoice& best, PhiloxKey key, std::uint32_t round);

}  // namespace olrank
