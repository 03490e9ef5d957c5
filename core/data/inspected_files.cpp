#include "core/data/inspected_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include "core/data/data_folder.h"

namespace olrank {

std::vector<std::string> files_to_inspect(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {path};
  std::vector<std::string> files;
  for (std::int64_t fold = 1; fold <= count_folds(path); ++fold) {
    const PartFiles parts = find_part_files(path, fold);
    for (const auto* part : {&parts.train, &parts.vali, &parts.test}) {
      for (const std::string& file : *part) {
        if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
      }
    }
  }
  return files;
}

std::int64_t shared_queries(const Inspection& a, const Inspection& b) {
  const std::unordered_set<std::string> names(a.qids.begin(), a.qids.end());
  return std::count_if(b.qids.begin(), b.qids.end(),
                       [&](const std::string& qid) { return names.contains(qid); });
}

std::vector<WidthFinding> compare_widths(const std::string& folder, const std::vector<InspectedFile>& all) {
  const auto width_of = [&](const std::vector<std::string>& files) {
    std::int64_t width = 0;
    for (const InspectedFile& inspected : all) {
      if (inspected.found && std::find(files.begin(), files.end(), inspected.path) != files.end()) {
        width = std::max(width, inspected.found->features);
      }
    }
    return width;
  };
  std::vector<WidthFinding> findings;
  for (std::int64_t fold = 1; fold <= count_folds(folder); ++fold) {
    const PartFiles parts = find_part_files(folder, fold);
    const std::int64_t train = width_of(parts.train);
    for (const auto& [name, files] : {std::pair("validation", parts.vali), std::pair("test", parts.test)}) {
      const std::int64_t width = width_of(files);
      if (train == 0 || width == 0 || width == train) continue;
      const std::string place =
          fmt::format("{}, fold {}: The {} set has {} features", folder, fold, name, width);
      findings.push_back(
          width > train
              ? WidthFinding{fmt::format("{}, {} more than the training set ({}); a run would fail.", place,
                                         width - train, train),
                             true}
              : WidthFinding{
                    fmt::format("{}, {} fewer than the training set ({}); missing features count as 0.",
                                place, train - width, train),
                    false});
    }
  }
  return findings;
}

}  // namespace olrank
