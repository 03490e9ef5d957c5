#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "core/data/dataset.h"
#include "core/data/letor_reader.h"
#include "core/io/fingerprint.h"
#include "core/io/mapped_memory.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// Metadata of a binary data file.
struct DatasetFileNotes {
  Fingerprint source;     // of the path and state of the text it was made from; zero for none
  MissingValues missing;  // NULL values of that text
};

/// The binary form of a part: a header of 256 bytes, then the matrix and the rest, each on a 64-byte
/// boundary, as they are in memory (little-endian), so that reading maps the file and checks it.
void write_dataset(const Dataset& data, const DatasetFileNotes& notes,
                   const std::function<void(std::string_view)>& sink);
void write_dataset_file(const Dataset& data, const DatasetFileNotes& notes,
                        const std::filesystem::path& path);

bool is_dataset_file(std::string_view first_bytes);

/// Reads only the header. It is checked for damage, but not against the data; nothing if it is damaged.
std::optional<DatasetFileNotes> read_dataset_notes(std::string_view bytes);

/// Checks every size before using it, and the contents against their fingerprint. Throws DataError with the
/// reason. The data set keeps the mapping.
Dataset read_dataset_file(const std::filesystem::path& path, ThreadPool& pool);
Dataset read_dataset_memory(MappedMemory memory, const std::string& name, ThreadPool& pool);

}  // namespace olrank
