#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/output_folder.h"

namespace olrank {

/// One piece of a study that is computed once: a pure function of its name and recipe.
struct WorkCell {
  std::string name;
  std::string recipe;  // what else decides the result: sizes, settings, fingerprints of data
  double cost = 1.0;   // in comparison with other cells
  /// An object that has the recipe; nothing if a signal stopped it.
  std::function<std::optional<nlohmann::ordered_json>()> compute = {};
  std::string title = {};  // that progress shows; the name if empty
};

/// The finished cells of a study's folder, one file each: DIR/cells/NAME.json. A file appears by atomic
/// rename.
class WorkCells {
 public:
  struct Naming {
    std::string_view command;                       // that messages name: "olrank bench generalisation"
    std::string recipe;                             // the member that holds the recipe
    std::function<bool(std::string_view)> is_cell;  // whether a file of this name may be a cell's
  };

  WorkCells(std::filesystem::path folder, Naming naming)
      : folder_(std::move(folder)), naming_(std::move(naming)) {}

  bool has(const WorkCell& cell) const;
  bool has_any() const { return !files().empty(); }
  /// Throws InvalidArgument for a cell of another recipe, IoError for a file that is no cell.
  nlohmann::ordered_json read(const WorkCell& cell) const;
  void write(const WorkCell& cell, const nlohmann::ordered_json& result) const;
  void clear() const;
  /// Computes the shard's cells that the folder lacks, `jobs` at once, and tells the progress. Stops early
  /// at a signal; the first error ends it.
  void compute(const std::vector<WorkCell>& cells, const Shard& shard, int jobs) const;

 private:
  std::filesystem::path file_of(const WorkCell& cell) const;
  std::vector<std::string> files() const;

  std::filesystem::path folder_;
  Naming naming_;
};

}  // namespace olrank
