#include "core/data/query_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string_view>

#include "core/io/mapped_memory.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::string_view kEnding = ".weight";

/// Takes the first line off the text, without blanks around it.
std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

std::vector<float> weights_of_docs(const std::string& file) {
  const MappedMemory memory = MappedMemory::of_file(file);
  std::vector<float> weights;
  for (std::string_view text = memory.text(); !text.empty();) {
    const std::string_view line = take_line(text);
    if (line.empty() && text.empty()) break;
    double weight = 0.0;
    const char* const line_end = line.data() + line.size();
    const auto [end, error] = std::from_chars(line.data(), line_end, weight);
    if (error != std::errc() || end != line_end || !is_weight(weight)) {
      throw_data_error(file, std::ssize(weights) + 1, 0,
                       "A weight must be a finite number of at least 0, not '{}'.", excerpt(line));
    }
    weights.push_back(static_cast<float>(weight));
  }
  return weights;
}

}  // namespace

std::string weights_file_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::string file = path + std::string(kEnding);
  std::error_code unknown;
  if (!fs::exists(fs::symlink_status(file, unknown))) return {};
  if (fs::is_regular_file(file, unknown)) return file;
  throw DataError(
      file, 0, 0,
      "This is a folder, a pipe, a device or a link to no file: remove or rename it, or make it a "
      "file with a weight for each document.");
}

std::vector<float> read_weights(const std::string& file, const DocTable& docs, const std::string& path) {
  const std::vector<float> of_docs = weights_of_docs(file);
  if (std::ssize(of_docs) != docs.docs()) {
    throw_data_error(file, 0, 0,
                     "The file has {} weights, and {} has {} documents: give one weight for each, "
                     "on a line of its own.",
                     of_docs.size(), path, docs.docs());
  }
  std::vector<float> weights(docs.qids.size(), -1.0F);
  std::size_t doc = 0;
  for (const QueryRun& run : docs.query_runs) {
    float& weight = weights[run.query];
    if (weight < 0.0F) weight = of_docs[doc];
    for (std::uint32_t i = 0; i < run.docs; ++i, ++doc) {
      if (of_docs[doc] == weight) continue;
      throw_data_error(file, static_cast<std::int64_t>(doc) + 1, 0,
                       "Query '{}' has documents of the weights {} and {}: give them one weight, "
                       "that of the query's list, or rename the file.",
                       docs.qids[run.query], weight, of_docs[doc]);
    }
  }
  return weights;
}

void commit_with_weights(const Dataset& data, AtomicFile& text, const std::string& path) {
  const std::vector<float>& weights = data.contents().weights;
  std::error_code unknown;
  const std::filesystem::file_status before = std::filesystem::status(path, unknown);
  if (std::filesystem::exists(before) && !std::filesystem::is_regular_file(before)) {
    if (!weights.empty())
      log_warning("'{}' gets the text without the weights of its queries: name a file to keep them.", path);
    return text.commit();
  }
  const std::string old = weights_file_of(path);
  if (!weights.empty()) {
    std::string lines;
    for (std::int64_t query = 0; query < data.queries(); ++query) {
      for (std::int64_t doc = 0; doc < data.docs_of(query); ++doc)
        lines += fmt::format("{}\n", weights[query]);
    }
    write_file_atomically(path + std::string(kEnding), lines);
  } else if (!old.empty()) {
    if (!std::filesystem::exists(before)) {
      throw_error<InvalidArgument>(
          "'{}' has the weights of another text, and would give them to '{}': remove it.", old, path);
    }
    std::filesystem::remove(old, unknown);
    if (unknown) throw IoError("remove", old, unknown.value());
  }
  text.commit();
}

bool is_weight(double weight) {
  return weight >= 0.0 && std::isfinite(static_cast<float>(weight));
}

std::vector<float> unless_all_one(std::vector<float> weights) {
  const bool all_one = std::all_of(weights.begin(), weights.end(), [](float w) { return w == 1.0F; });
  return all_one ? std::vector<float>() : weights;
}

std::vector<double> relative_weights(const Dataset& data) {
  const std::vector<float>& weights = data.contents().weights;
  if (weights.empty()) return {};
  const double mean =
      std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
  std::vector<double> relative;
  relative.reserve(weights.size());
  for (const float weight : weights) relative.push_back(double{weight} / mean);
  return relative;
}

}  // namespace olrank
