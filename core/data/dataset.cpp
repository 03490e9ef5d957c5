#include "core/data/dataset.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace olrank {

Dataset::Dataset(Contents contents) : contents_(std::move(contents)) {
  assert(contents_.offsets.size() == contents_.qids.size() + 1);
  assert(contents_.values.size() == contents_.grades.size() * static_cast<std::size_t>(contents_.features));
  assert(contents_.doc_names.empty() || contents_.doc_names.size() == contents_.grades.size());
  for (const std::uint8_t grade : contents_.grades) max_grade_ = std::max(max_grade_, int{grade});
}

}  // namespace olrank
