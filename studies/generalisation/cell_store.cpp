#include "studies/generalisation/cell_store.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"

namespace olrank {
namespace {

constexpr std::string_view kCells = "cells";

/// Whether a file of this name may be a cell's.
bool is_cell_name(const std::string& name) {
  return name.size() > 2 && name[0] >= 'A' && name[0] <= 'F' && name[1] == '-' && name.ends_with(".json");
}

std::vector<std::string> cell_files(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder / kCells, missing)) {
    const std::string name = entry.path().filename().string();
    if (is_cell_name(name)) names.push_back(name);
  }
  return names;
}

}  // namespace

std::filesystem::path CellStore::file_of(const GeneralisationCell& cell) const {
  return folder_ / kCells / (cell.name() + ".json");
}

bool CellStore::has(const GeneralisationCell& cell) const {
  return std::filesystem::exists(file_of(cell));
}

bool CellStore::has_any() const {
  return !cell_files(folder_).empty();
}

void CellStore::clear() const {
  for (const std::string& name : cell_files(folder_)) {
    const std::array<std::string_view, 1> file = {name};
    remove_files(folder_, kCells, file);
  }
}

std::vector<CellRow> CellStore::read(const GeneralisationCell& cell) const {
  const std::filesystem::path file = file_of(cell);
  const auto json = try_parse_json(read_file(file, kLargestJson));
  if (!json.is_object() || !json.contains("recipe") || !json.contains("rows")) {
    throw IoError(
        fmt::format("{}: This is not a cell of 'olrank bench generalisation': remove it, or start "
                    "again with --force.",
                    file.string()));
  }
  if (json["recipe"] != cell.recipe) {
    throw InvalidArgument(
        fmt::format("{} was made with other sizes or data ({}), not these ({}). Choose another --out, or "
                    "replace the results with --force.",
                    file.string(), json["recipe"].get<std::string>(), cell.recipe));
  }
  std::vector<CellRow> rows;
  for (const auto& entry : json["rows"]) {
    CellRow& row = rows.emplace_back();
    for (const auto& [name, value] : entry.items()) {
      if (value.is_string()) {
        row.labels[name] = value.get<std::string>();
      } else {
        row.values[name] = value.is_number() ? value.get<double>() : std::nan("");
      }
    }
  }
  return rows;
}

void CellStore::write(const GeneralisationCell& cell, const std::vector<CellRow>& rows) const {
  make_folder(folder_ / kCells);
  nlohmann::ordered_json json = {{"experiment", std::string(1, cell.experiment)},
                                 {"setting", cell.setting},
                                 {"seed", cell.seed},
                                 {"recipe", cell.recipe},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const CellRow& row : rows) {
    nlohmann::ordered_json entry = nlohmann::ordered_json::object();
    for (const auto& [name, text] : row.labels) entry[name] = text;
    for (const auto& [name, value] : row.values) entry[name] = number_or_null(value);
    json["rows"].push_back(std::move(entry));
  }
  write_file_atomically(file_of(cell), dump_json(json, 1) + "\n");
}

}  // namespace olrank
