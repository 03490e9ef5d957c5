#include "core/data/dataset.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/error.h"

namespace olrank {

Dataset::Dataset(Contents contents) : contents_(std::move(contents)) {
  assert(contents_.offsets.size() == contents_.qids.size() + 1);
  assert(contents_.weights.empty() || contents_.weights.size() == contents_.qids.size());
  assert(is_sparse() ||
         contents_.values.size() == contents_.grades.size() * static_cast<std::size_t>(contents_.features));
  assert(!is_sparse() || (contents_.row_begins.size() == contents_.grades.size() + 1 &&
                          contents_.values.size() == contents_.columns.size()));
  assert(contents_.doc_names.empty() || contents_.doc_names.size() == contents_.grades.size());
  for (const std::uint8_t grade : contents_.grades) max_grade_ = std::max(max_grade_, int{grade});
}

void Dataset::refuse_sparse() {
  throw InvalidArgument(
      "This needs dense features, and the data are sparse: set data.layout = \"dense\", with enough "
      "memory for all of their zeros.");
}

}  // namespace olrank
