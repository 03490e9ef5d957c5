#pragma once

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"
#include "core/fair/doc_group.h"
#include "core/fair/group_settings.h"

namespace olrank {

/// A group's documents in a part.
struct GroupSummary {
  std::int64_t docs = 0;
  double mean_grade = 0.0;  // its utility
};

/// A part's groups, by document.
struct DatasetGroups {
  std::vector<DocGroup> of_doc;
  std::vector<GroupSummary> summaries;  // of A, B, …
};

/// How documents come into groups: by thresholds that were fitted on the training part, or by a file.
class GroupRule {
 public:
  /// `train` has raw values. Throws InvalidArgument for a feature that does not exist, for a group without
  /// documents, and for an automatic β without a ratio; DataError for a file that does not fit the data.
  GroupRule(const GroupSettings& settings, const Dataset& train);

  /// `part` has raw values and the features of the training part.
  DatasetGroups groups_of(const Dataset& part) const;

  /// Between the groups, increasing; empty with a file.
  const std::vector<double>& thresholds() const { return thresholds_; }
  /// The values are β of A against B, C, …
  const std::vector<double>& beta() const { return beta_; }
  const DatasetGroups& of_train() const { return train_; }

 private:
  std::vector<double> fit_thresholds(const Dataset& train) const;
  std::vector<double> fit_beta() const;

  GroupSettings settings_;
  std::size_t groups_ = 2;
  std::vector<double> thresholds_;
  std::vector<double> beta_;
  DatasetGroups train_;
};

}  // namespace olrank
