#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/fair/exposure.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// A shown document's exposure is its rank's P, or whether the user examined it.
enum class ExposureKind { kPosition, kExamined };

/// Which groups of documents exposure is shared between, and what is fair. Off without a feature or a file.
struct GroupSettings {
  std::int64_t feature = 0;                      // from 1, as in the data's files
  std::optional<std::vector<double>> threshold;  // one between each two groups, increasing
  std::optional<std::vector<double>> quantile;
  std::string file;
  std::optional<std::vector<double>> beta;  // β of A against B, C, …; else from mean grades
  double epsilon = 1.0;                     // ε, in units of P(1)
  ExposureKind exposure = ExposureKind::kPosition;
  std::vector<double> examination;  // P(1), P(2), …; empty: the user model's

  bool are_set() const { return feature > 0 || !file.empty(); }
  /// How many groups the settings say; none where a file does.
  std::optional<std::size_t> count() const;
  /// Throws InvalidArgument for settings that contradict each other.
  void check(std::int64_t cutoff) const;
  /// Checks only what check() checks of the number of groups.
  void check_groups() const;

  static const Schema& schema();
};

/// "key=value,key=value" of the settings above. `origin` begins error messages: "--groups".
GroupSettings parse_group_settings(std::string_view text, std::string_view origin);

template <>
struct EnumNames<ExposureKind> {
  static constexpr std::array values = names_in_order<ExposureKind>("position", "examined");
};

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
