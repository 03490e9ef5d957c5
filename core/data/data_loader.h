#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/data_settings.h"
#include "core/data/dataset.h"
#include "core/data/letor_reader.h"
#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"

namespace olrank {

/// The raw data of one fold; all parts are equally wide.
struct DataParts {
  Dataset train;
  std::optional<Dataset> vali;
  Dataset test;
};

/// Loads the data that the settings name: one fold of a folder, single files, or generated data. The
/// training part decides the number of features: a narrower part is padded with zeros, a wider one is a
/// DataError. Warns about test queries that are also training queries, and about parts with a single grade.
DataParts load_parts(const DataSettings& settings, std::int64_t fold, ExecutionContext& context);

enum class DataPart { kTrain, kVali, kTest };

/// One part of load_parts. `source` may also be a single file, or "-" for standard input; that file is then
/// returned for every `part`.
Dataset load_part(const DataSettings& settings, std::int64_t fold, DataPart part,
                  ExecutionContext& context);

/// Bytes that `max_memory` allows: "8GB", or "auto" for half of the memory this process may use.
std::int64_t allowed_bytes(const DataSettings& settings);

/// How the settings have data read. Without a given `max_memory`, data that is_too_wide() is refused; with
/// it, what exceeds it goes to files in the cache folder, or the system's temporary folder without one.
LetorOptions letor_options(const DataSettings& settings);

/// Number of query IDs of `a` that `b` has, too.
std::int64_t count_shared_queries(std::span<const std::string> a, std::span<const std::string> b);

template <>
struct EnumNames<DataPart> {
  static constexpr std::array values = names_in_order<DataPart>("train", "vali", "test");
};

/// The files of one fold. A part may consist of several files, in order.
struct PartFiles {
  std::vector<std::string> train;
  std::vector<std::string> vali;  // may be missing
  std::vector<std::string> test;
};

/// Finds the files of a fold (from 1) in a folder that holds one of
///   train.txt, test.txt and perhaps vali.txt: the only fold is 1;
///   Fold1 … Fold5, each with these files;
///   S1 … S5: fold k trains on parts k, k+1, k+2, validates on k+3 and tests on k+4, cyclically.
/// Each file plain, .gz or .zst, or .olrank in place of .txt. Throws InvalidArgument that lists what was
/// looked for, or DataError when one name is there in several forms.
PartFiles find_part_files(const std::string& folder, std::int64_t fold);

/// The folds that the folder has, from 1.
std::int64_t count_folds(const std::string& folder);

}  // namespace olrank
