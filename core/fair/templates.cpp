#include "core/fair/templates.h"

#include <cassert>

namespace olrank {

TemplateTable::TemplateTable(const ExposureRule& rule, int length) : length_(length), gains_(1, 0.0) {
  assert(length >= 0 && length <= kMostPlaces);
  gains_.reserve(size());
  for (int rank = 0; rank < length; ++rank) {
    const std::size_t shorter = gains_.size();
    const double for_a = rule.term(DocGroup::kA, rank);
    const double for_b = rule.term(DocGroup::kB, rank);
    for (std::size_t pattern = 0; pattern < shorter; ++pattern) gains_.push_back(gains_[pattern] + for_a);
    for (std::size_t pattern = 0; pattern < shorter; ++pattern) gains_[pattern] += for_b;
  }
}

}  // namespace olrank
