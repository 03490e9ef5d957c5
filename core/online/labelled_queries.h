#pragma once

#include <cstdint>

#include "core/data/dataset.h"
#include "core/online/query_docs.h"
#include "core/online/query_grades.h"

namespace olrank {

/// The training part with its true grades, for the few rankers that learn from labels instead of clicks: an
/// upper bound to compare others with. A channel of its own, so that no grade reaches any other ranker.
class LabelledQueries {
 public:
  /// No query at all.
  LabelledQueries() = default;
  /// `train` has to outlive whoever holds this.
  explicit LabelledQueries(const Dataset& train) : train_(&train) {}

  std::int64_t queries() const { return train_ == nullptr ? 0 : train_->queries(); }
  QueryDocs docs_of(std::int64_t query) const {
    return {query, train_->offset(query), train_->features_of(query)};
  }
  QueryGrades grades_of(std::int64_t query) const { return {train_->grades_of(query)}; }

 private:
  const Dataset* train_ = nullptr;
};

}  // namespace olrank
