#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>

#include "apps/command.h"
#include "core/data/dataset.h"
#include "core/data/letor_reader.h"
#include "core/data/letor_stream.h"
#include "core/runtime/execution_context.h"

namespace olrank {

inline constexpr const char* kCacheHelp =
    "folder for binary copies of text files, auto or none [default: auto]";
inline constexpr const char* kMaxMemoryHelp =
    "limit for features in memory, such as 8GB, beyond which they go to files; auto is half of the "
    "machine's memory, beyond which they are refused [default: auto]";

/// Flags of the commands that read single files.
struct ReadingFlags {
  int threads = available_threads();
  std::string max_memory = "auto";

  void declare(CLI::App& app);
  LetorOptions options() const;
};

/// Reads LETOR text or a binary data file, told apart by their first bytes; does not use the cache.
Dataset read_any(const std::string& path, const ReadingFlags& flags, ExecutionContext& context);

/// Writes by file extension: .olrank is binary, .gz and .zst are compressed text; "-" is standard output.
void write_any(const Dataset& data, const std::string& path, const LetorFormat& format);

/// The description of a written file that commands print.
nlohmann::ordered_json summary_of(const std::string& path, const Dataset& data);
std::string summary_text(const nlohmann::ordered_json& summary);

}  // namespace olrank
