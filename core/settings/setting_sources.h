#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/settings/schema.h"
#include "core/settings/toml_document.h"

namespace olrank {

/// A setting from the command line or the environment. It overrides the file; later overrides win over
/// earlier ones.
struct SettingOverride {
  std::string table;
  std::string ranker;  // the ranker's name; empty: all rankers
  std::string key;
  std::string text;
  std::string origin;  // "--alpha", "--set ranker.alpha", "OLRANK_RANKER_ALPHA"
};

/// Hears of each setting before it is assigned, with the place that gives it. Returns whether to assign it.
using SettingFilter = std::function<bool(const std::string& key, const std::string& origin)>;

/// The sources of settings in increasing precedence: a file, then the command line.
class SettingSources {
 public:
  SettingSources(const TomlDocument& document, std::span<const SettingOverride> overrides)
      : document_(document), overrides_(overrides) {}

  /// Throws InvalidArgument, naming the nearest, for a table that is not among these: `whose` says of whom,
  /// as in "'olrank train' has no table 'trian'.".
  void require_tables(std::span<const std::string> names, std::string_view whose) const;

  /// Assigns the settings of the schema's table to the object.
  void apply(const Schema& schema, void* object, const SettingFilter& filter = {}) const;

  /// Assigns the settings of one table of a file, whatever its name. Settings of earlier versions are
  /// passed over where they have the value that is fixed now.
  static void apply_table(const Schema& schema, void* object, const TomlDocument::Table& table,
                          const SettingFilter& filter = {});
  static void apply_override(const Schema& schema, void* object, const SettingOverride& override) {
    assign_setting_text(schema, object, override.key, override.text, override.origin);
  }

 private:
  const TomlDocument& document_;
  std::span<const SettingOverride> overrides_;
};

}  // namespace olrank
