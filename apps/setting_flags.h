#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <vector>

#include "apps/configuration.h"

namespace olrank {

/// The flags of a command that takes a configuration: one per setting, generated from its description, and
/// --set for any key.
class SettingFlags {
 public:
  /// Declares the flags of all tables; those of [study] only if `of_study`.
  void declare(CLI::App& app, bool of_study = false);
  /// Declares the flags of some tables only.
  void declare(CLI::App& app, std::span<const SchemaWithDefaults> tables);
  /// The settings given, in the order of the command line.
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
