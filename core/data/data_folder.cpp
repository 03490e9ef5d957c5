#include "core/data/data_folder.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/text/nearest.h"

namespace olrank {
namespace {

constexpr std::int64_t kFolds = 5;

/// The one file of that stem, in whichever form it is there.
std::optional<std::string> find_file(const std::filesystem::path& folder, const std::string& stem) {
  std::vector<std::string> found;
  for (const char* ending : {".txt", ".txt.gz", ".txt.zst", ".olrank"}) {
    const std::filesystem::path path = folder / (stem + ending);
    std::error_code unreadable;
    if (std::filesystem::exists(path, unreadable)) found.push_back(path.string());
  }
  if (found.empty()) return std::nullopt;
  if (found.size() > 1) {
    throw DataError(folder.string(), 0, 0,
                    fmt::format("Found {}. Remove or rename all but one of them.", joined(found)));
  }
  return found.front();
}

std::optional<PartFiles> find_named_parts(const std::filesystem::path& folder) {
  const auto train = find_file(folder, "train");
  const auto test = find_file(folder, "test");
  if (!train || !test) return std::nullopt;
  PartFiles files{{*train}, {}, {*test}};
  if (const auto vali = find_file(folder, "vali")) files.vali = {*vali};
  return files;
}

/// All of S1 … S5, or nothing when none is there.
std::optional<std::array<std::string, kFolds>> find_numbered_parts(const std::filesystem::path& folder) {
  std::array<std::string, kFolds> parts;
  std::vector<std::string> missing;
  for (std::int64_t part = 1; part <= kFolds; ++part) {
    const std::string stem = fmt::format("S{}", part);
    if (const auto file = find_file(folder, stem)) {
      parts[part - 1] = *file;
    } else {
      missing.push_back(stem);
    }
  }
  if (std::ssize(missing) == kFolds) return std::nullopt;
  if (!missing.empty()) {
    throw DataError(folder.string(), 0, 0,
                    fmt::format("{} {} missing; folds are made from all five parts S1 to S5.",
                                joined(missing), missing.size() == 1 ? "is" : "are"));
  }
  return parts;
}

[[noreturn]] void refuse_folder(const std::filesystem::path& folder) {
  std::error_code unreadable;
  const std::filesystem::directory_iterator entries(folder, unreadable);
  if (unreadable) throw IoError("read the folder", folder.string(), unreadable.value());
  throw InvalidArgument(fmt::format(
      "'{}' contains no data set in a known layout: train and test (and optionally vali), folders Fold1 to "
      "Fold5 with these files, or S1 to S5, each as .txt, .txt.gz, .txt.zst or .olrank. Pass the files "
      "themselves (in an experiment, data.train and data.test), or create the parts with 'olrank data "
      "split'.",
      folder.string()));
}

void refuse_fold(const std::filesystem::path& folder, std::int64_t fold, std::int64_t folds) {
  if (fold >= 1 && fold <= folds) return;
  throw InvalidArgument(
      folds == 1 ? fmt::format("--fold must be 1, not {}: '{}' has only one fold.", fold, folder.string())
                 : fmt::format("--fold must be between 1 and {}, not {}: '{}' has {} folds.", folds, fold,
                               folder.string(), folds));
}

void need_folder(const std::filesystem::path& folder) {
  std::error_code unreadable;
  const auto status = std::filesystem::status(folder, unreadable);
  if (!std::filesystem::exists(status)) throw IoError("read", folder.string(), ENOENT);
  if (!std::filesystem::is_directory(status)) throw IoError("open the folder", folder.string(), ENOTDIR);
}

}  // namespace

std::int64_t count_folds(const std::string& folder) {
  need_folder(folder);
  if (find_named_parts(folder)) return 1;
  std::int64_t folds = 0;
  while (find_named_parts(std::filesystem::path(folder) / fmt::format("Fold{}", folds + 1))) ++folds;
  if (folds > 0) return folds;
  if (find_numbered_parts(folder)) return kFolds;
  refuse_folder(folder);
}

PartFiles find_part_files(const std::string& folder, std::int64_t fold) {
  refuse_fold(folder, fold, count_folds(folder));
  if (const auto files = find_named_parts(folder)) return *files;
  if (const auto files = find_named_parts(std::filesystem::path(folder) / fmt::format("Fold{}", fold)))
    return *files;
  const auto parts = find_numbered_parts(folder);
  const auto part = [&](std::int64_t steps) { return (*parts)[(fold - 1 + steps) % kFolds]; };
  return {{part(0), part(1), part(2)}, {part(3)}, {part(4)}};
}

}  // namespace olrank
