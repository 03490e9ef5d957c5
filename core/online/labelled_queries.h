#pragma once

#include <cstdint>

#include "core/data/dataset.h"
#include "core/online/query_grades.h"

namespace olrank {

/// The training part with its true grades, for the few rankers that learn from labels instead of clicks, as
/// an upper bound for the others. A separate type, so that no other ranker sees a grade.
class LabelledQueries {
 public:
  /// No queries.
  LabelledQueries() = default;
  /// `train` must outlive this object and its copies.
  explicit LabelledQueries(const Dataset& train) : train_(&train) {}

  std::int64_t queries() const { return train_ == nullptr ? 0 : train_->queries(); }
  const Dataset& data() const { return *train_; }
  QueryGrades grades_of(std::int64_t query) const { return {train_->grades_of(query)}; }

 private:
  const Dataset* train_ = nullptr;
};

}  // namespace olrank
