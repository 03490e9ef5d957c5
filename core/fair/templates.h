#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/fair/exposure.h"
#include "core/random/rng_stream.h"

namespace olrank {

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

/// By fewer violations, then by the smaller |UF_t|, then by a coin of the round. `key` is the trial's key
/// of Purpose::kTemplate.
bool is_better(const FairChoice& candidate, const FairChoice& best, PhiloxKey key, std::uint32_t round);

}  // namespace olrank
