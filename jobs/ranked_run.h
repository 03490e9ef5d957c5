#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "core/ranks/rank_group.h"
#include "core/ranks/rank_place.h"
#include "core/runtime/log_output.h"
#include "jobs/experiment_setup.h"
#include "jobs/settings/configuration.h"

namespace olrank {

/// A run of several processes, each of which trains a share of the ensembles' members.
class RankedRun {
 public:
  /// Joins the other ranks that the environment tells of; null for a run of one process. Throws
  /// InvalidArgument where the configuration cannot be shared: a ranker without members, or with too few.
  static std::unique_ptr<RankedRun> join(const Configuration& configuration);
  /// Waits until every rank has come here, unless an error has.
  ~RankedRun();
  RankedRun(const RankedRun&) = delete;
  RankedRun& operator=(const RankedRun&) = delete;

  RankGroup& group() { return *group_; }
  /// Calls work(), and throws RankLost with what is kept of the run if another rank is lost meanwhile.
  void play(const std::function<void()>& work);
  /// The configuration with this rank's card and its part of the machine's threads.
  Configuration on_this_rank(const Configuration& configuration) const;
  /// Throws InvalidArgument on every rank unless all are of one build, configuration and data.
  void require_same(const Configuration& configuration, const ExperimentPlan& plan);

 private:
  RankedRun(const RankPlace& place, const std::filesystem::path& out);

  RankPlace place_;
  std::filesystem::path out_;
  std::unique_ptr<RankGroup> group_;
  std::optional<MutedLog> muted_;  // the first rank speaks for all
};

}  // namespace olrank
