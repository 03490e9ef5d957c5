#include "apps/experiment_flags.h"

#include <fmt/format.h>

#include <cstdlib>

#include "apps/shard.h"

namespace olrank {

void ExperimentFlags::declare(CLI::App& app) {
  auto* resume = app.add_flag("--resume", resume_, "go on with what an earlier run left in --out");
  app.add_flag("--force", force_, "replace what an earlier run left in --out")->excludes(resume);
  app.add_option("--shard", shard_, "only trials I of N, I from 0; also read from a scheduler's variables")
      ->type_name("I/N");
}

ExperimentRequest ExperimentFlags::request() const {
  ExperimentRequest request;
  request.shard = shard_.empty() ? shard_of_environment(std::getenv) : parse_shard(shard_);
  if (resume_) request.existing = Existing::kResume;
  if (force_) request.existing = Existing::kReplace;
  return request;
}

std::string ExperimentFlags::spoken() const {
  std::string line;
  if (!shard_.empty()) line += " --shard " + shard_;
  if (resume_) line += " --resume";
  return line;
}

std::string spoken(std::span<const SettingOverride> overrides) {
  std::string line;
  for (const SettingOverride& said : overrides) {
    const std::string key = said.ranker.empty() ? said.key : said.ranker + "." + said.key;
    line += fmt::format(" --set '{}.{}={}'", said.table, key, said.text);
  }
  return line;
}

}  // namespace olrank
