#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "studies/generalisation/generalisation_plan.h"

namespace olrank {

/// The finished cells of a folder, one file each: DIR/cells/A-query-m50-seed3.json. A file appears by
/// atomic rename and says nothing about time or machine, so that equal cells have equal bytes.
class CellStore {
 public:
  explicit CellStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  bool has(const GeneralisationCell& cell) const;
  bool has_any() const;
  /// Throws InvalidArgument for a cell of another recipe, IoError for a file that is no cell.
  std::vector<CellRow> read(const GeneralisationCell& cell) const;
  void write(const GeneralisationCell& cell, const std::vector<CellRow>& rows) const;
  /// Removes all cells.
  void clear() const;

 private:
  std::filesystem::path file_of(const GeneralisationCell& cell) const;

  std::filesystem::path folder_;
};

}  // namespace olrank
