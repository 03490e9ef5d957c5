#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/settings/value.h"

namespace olrank {

/// A TOML file as a flat list: its tables in the order of the file, each with its keys. What the tables
/// mean is not known here.
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

/// Throws InvalidArgument with file, line and column for text that is not TOML, or holds what no setting
/// can be (dates, lists within lists, lists of mixed kinds).
TomlDocument parse_toml(std::string_view text, std::string_view file_name);
TomlDocument read_toml(const std::filesystem::path& path);

}  // namespace olrank
