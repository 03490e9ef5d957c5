#pragma once

#include <array>
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
  std::array<GroupSummary, 2> summaries;  // of A and B
};

/// How documents come into groups: by a threshold that was fitted on the training part, or by a file.
class GroupRule {
 public:
  /// `train` has raw values. Throws InvalidArgument for a feature that does not exist, for a group without
  /// documents, and for an automatic β without a ratio; DataError for a file that does not fit the data.
  GroupRule(const GroupSettings& settings, const Dataset& train);

  /// `part` has raw values and the features of the training part.
  DatasetGroups groups_of(const Dataset& part) const;

  double threshold() const { return threshold_; }
  double beta() const { return beta_; }
  const DatasetGroups& of_train() const { return train_; }

 private:
  double fit_threshold(const Dataset& train) const;
  double fit_beta() const;

  GroupSettings settings_;
  double threshold_ = 0.0;
  double beta_ = 1.0;
  DatasetGroups train_;
};

}  // namespace olrank
