#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <vector>

#include "jobs/experiment_run.h"
#include "jobs/settings/configuration.h"

namespace olrank {

/// The flags of a command that takes a configuration: one per setting, generated from its description, and
/// --set for any key. Settings may also come from the environment.
class SettingFlags {
 public:
  /// Declares the flags of all tables; of [search] and [study], which only one command has each, those of
  /// `own`.
  void declare(CLI::App& app, const Schema* own = nullptr);
  /// Declares the flags of some tables only.
  void declare(CLI::App& app, std::span<const SchemaWithDefaults> tables);
  /// The settings given: those of the environment, then those of the command line in its order.
  std::vector<SettingOverride> overrides() const;

 private:
  struct Flag {
    CLI::Option* option;
    std::string table;
    std::string key;
  };

  std::vector<SettingOverride> given_flags() const;

  std::vector<const Schema*> tables_;
  const CLI::App* app_ = nullptr;
  CLI::Option* set_ = nullptr;
  std::vector<Flag> flags_;
};

/// "eval_every" as it is written in a variable's name: "EVAL_EVERY".
std::string capitals(std::string text);

/// The settings of these tables among variables "NAME=VALUE": OLRANK_RUN_JOBS=2 is run.jobs. Other names
/// are ignored; a name that begins with one of the tables and goes on with none of its keys is an error.
std::vector<SettingOverride> settings_of_environment(std::span<const char* const> variables,
                                                     std::span<const Schema* const> tables);

/// The flags of a command that runs trials: what to do with existing results, and which shard to run.
class ExperimentFlags {
 public:
  void declare(CLI::App& app);

  /// The shard comes from --shard, otherwise from a scheduler's environment variables.
  ExperimentRequest request() const;
  bool resume() const { return resume_; }

 private:
  bool resume_ = false;
  bool force_ = false;
  std::string shard_;
};

}  // namespace olrank
