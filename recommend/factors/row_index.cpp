#include "recommend/factors/row_index.h"

namespace olrank {

void RowIndex::build(std::span<const std::int32_t> row_of_sample, std::int64_t rows) {
  ends_.assign(rows + 2, 0);
  std::size_t used = 0;
  for (const std::int32_t row : row_of_sample) {
    if (row < 0) continue;
    ++ends_[row + 2];
    ++used;
  }
  for (std::int64_t row = 2; row < rows + 2; ++row) ends_[row] += ends_[row - 1];
  samples_.resize(used);
  // Entry row + 1 is where the row's next sample goes; in the end it is where the row ends.
  for (std::size_t sample = 0; sample < row_of_sample.size(); ++sample) {
    if (row_of_sample[sample] >= 0)
      samples_[ends_[row_of_sample[sample] + 1]++] = static_cast<std::int32_t>(sample);
  }
}

}  // namespace olrank
