#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace olrank {

/// Which samples of a batch belong to each row, in the order of the samples: sums over them are the same on
/// any number of threads. Samples of row −1 belong to none.
class RowIndex {
 public:
  void build(std::span<const std::int32_t> row_of_sample, std::int64_t rows);

  std::span<const std::int32_t> samples_of(std::int64_t row) const {
    return {samples_.data() + ends_[row], static_cast<std::size_t>(ends_[row + 1] - ends_[row])};
  }

 private:
  std::vector<std::int32_t> ends_;
  std::vector<std::int32_t> samples_;
};

}  // namespace olrank
