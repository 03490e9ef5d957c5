#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace olrank {

/// Files of a folder whose names have a number, such as events-000001.jsonl.
struct NumberedFiles {
  std::string_view begin;
  std::string_view end;

  std::filesystem::path path(const std::filesystem::path& folder, std::uint64_t number) const;
  /// 0 for another file.
  std::uint64_t number_of(const std::filesystem::path& path) const;
  /// In the order of their numbers.
  std::vector<std::filesystem::path> in(const std::filesystem::path& folder) const;
  /// Renames them, so that they are not taken up.
  void set_aside(const std::filesystem::path& folder) const;
};

}  // namespace olrank
