#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/settings/value.h"

namespace olrank {

/// A TOML file as a flat list of tables in file order, each with its keys. Independent of the meaning of
/// the tables.
struct TomlDocument {
  struct Entry {
    std::string key;
    SettingValue value;
    std::string origin;      // of the value: "file.toml:12:9"
    std::string key_origin;  // of the key
  };
  struct Table {
    std::string name;       // dotted for nested tables; empty for keys above all tables
    bool repeated = false;  // written [[name]]
    std::string origin;
    std::vector<Entry> entries;
  };
  std::vector<Table> tables;
};

/// Throws InvalidArgument with file, line and column for invalid TOML and for values that no setting
/// accepts (dates, nested lists, lists of mixed types).
TomlDocument parse_toml(std::string_view text, std::string_view file_name);
TomlDocument read_toml(const std::filesystem::path& path);

}  // namespace olrank
