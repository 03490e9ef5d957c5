#include "apps/experiment_flags.h"

#include <cstdlib>

#include "jobs/shard.h"

namespace olrank {

void ExperimentFlags::declare(CLI::App& app) {
  auto* resume = app.add_flag("--resume", resume_, "continue an earlier run in --out");
  app.add_flag("--force", force_, "replace the results of an earlier run in --out")->excludes(resume);
  app.add_option(
         "--shard", shard_,
         "run only shard I of N, with I from 0; default: from the scheduler's environment variables")
      ->type_name("I/N");
}

ExperimentRequest ExperimentFlags::request() const {
  ExperimentRequest request;
  request.shard = shard_.empty() ? shard_of_environment([](const char* name) { return std::getenv(name); })
                                 : parse_shard(shard_);
  if (resume_) request.existing = Existing::kResume;
  if (force_) request.existing = Existing::kReplace;
  return request;
}

}  // namespace olrank
