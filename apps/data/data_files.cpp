#include "apps/data/data_files.h"

#include <fmt/format.h>

#include "core/data/data_loader.h"
#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/query_weights.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/io/standard_output.h"
#include "core/runtime/log.h"

namespace olrank {

using nlohmann::ordered_json;

void ReadingFlags::declare(CLI::App& app) {
  app.add_option("--threads", threads, "CPU threads [default: every core]")->type_name("N");
  app.add_option("--max-memory", max_memory, kMaxMemoryHelp)->type_name("SIZE");
}

LetorOptions ReadingFlags::options() const {
  DataSettings settings;
  settings.max_memory = max_memory;
  settings.weights = true;
  return letor_options(settings);
}

Dataset read_any(const std::string& path, const ReadingFlags& flags, ExecutionContext& context) {
  return DatasetCache().read(path, flags.options(), context.pool());
}

void write_any(const Dataset& data, const std::string& path, const LetorFormat& format) {
  if (path.ends_with(".olrank")) {
    write_dataset_file(data, {}, path);
    return;
  }
  if (path == "-") {
    if (!data.contents().weights.empty())
      log_warning(
          "Standard output has the text without the weights of its queries: name a file to keep them.");
    write_letor(data, format, write_output);
    return;
  }
  AtomicFile file(path);
  const auto compressor =
      Compressor::make(compression_of_name(path), [&](std::string_view piece) { file.write(piece); });
  write_letor(data, format, [&](std::string_view piece) { compressor->write(piece); });
  compressor->finish();
  commit_with_weights(data, file, path);
}

ordered_json summary_of(const std::string& path, const Dataset& data) {
  return {{"file", path},
          {"queries", data.queries()},
          {"docs", data.docs()},
          {"features", data.features()},
          {"fingerprint", data.fingerprint().hex()}};
}

void print_summary(const ordered_json& summary) {
  fmt::print("Wrote {}: {} queries, {} documents, {} features\n", summary["file"].get<std::string>(),
             summary["queries"].get<std::int64_t>(), summary["docs"].get<std::int64_t>(),
             summary["features"].get<std::int64_t>());
}

}  // namespace olrank
