#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// Opens a file of a state folder, with mode 0600 if O_CREAT creates it. −1 if it does not exist, or with
/// O_EXCL if it does. Throws IoError, also for symbolic links and everything else that is no regular file:
/// the service never reads or writes through them.
int open_own_file(const std::filesystem::path& path, int flags);

/// The bytes of a file of a state folder; none if it does not exist.
std::optional<std::string> read_own_file(const std::filesystem::path& path);

/// Whether `path` still names the open file.
bool names_open_file(const std::filesystem::path& path, int descriptor);

/// `path`, or with ".2", ".3", … behind it if that exists.
std::filesystem::path unused_path(const std::filesystem::path& path);

/// Files of a folder whose names have a number, such as events-000001.jsonl.
struct NumberedFiles {
  std::string_view begin;
  std::string_view end;

  std::filesystem::path path(const std::filesystem::path& folder, std::uint64_t number) const;
  /// 0 for another file.
  std::uint64_t number_of(const std::filesystem::path& path) const;
  /// Lists them in the order of their numbers.
  std::vector<std::filesystem::path> in(const std::filesystem::path& folder) const;
  /// Renames them, so that they are not taken up.
  void set_aside(const std::filesystem::path& folder) const;
};

}  // namespace olrank
