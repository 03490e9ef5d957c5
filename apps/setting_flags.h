#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <vector>

#include "apps/configuration.h"

namespace olrank {

/// The flags of a command that takes a configuration: one for each setting, made from its description, and
/// --set for all of them.
class SettingFlags {
 public:
  /// Without the flags of a study, unless the command carries one out.
  void declare(CLI::App& app, bool of_study = false);
  /// Of some tables only.
  void declare(CLI::App& app, std::span<const SchemaWithDefaults> tables);
  /// What was said, in the order of the command line.
  std::vector<SettingOverride> overrides() const;

 private:
  struct Flag {
    CLI::Option* option;
    std::string table;
    std::string key;
  };

  const CLI::App* app_ = nullptr;
  CLI::Option* set_ = nullptr;
  std::vector<Flag> flags_;
};

}  // namespace olrank
