#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/fair/exposure.h"

namespace olrank {

/// The groups of the places of a list: bit r is set where place r, from 0, is for group A.
using TemplatePattern = std::uint32_t;

/// All 2^k templates of one length: Ω^k of Jia, PhD thesis, University of Virginia, 2022, Section 3.1.
class TemplateTable {
 public:
  /// 2^12 templates are cheap to look through; each further place doubles them.
  static constexpr int kMostPlaces = 12;

  TemplateTable(const ExposureRule& rule, int length);

  int length() const { return length_; }
  TemplatePattern size() const { return TemplatePattern{1} << length_; }
  /// What a list of this template adds to the unfairness, Eq. (3.1.2).
  double gain(TemplatePattern pattern) const { return gains_[pattern]; }
  static int needed_of_a(TemplatePattern pattern) { return std::popcount(pattern); }

 private:
  int length_;
  std::vector<double> gains_;
};

}  // namespace olrank
