#include "core/data/data_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/data/data_folder.h"
#include "core/data/dataset_cache.h"
#include "core/data/join.h"
#include "core/data/synthetic.h"
#include "core/data/synthetic_source.h"
#include "core/error.h"
#include "core/runtime/log.h"
#include "core/text/byte_size.h"
#include "core/text/nearest.h"

namespace olrank {
namespace {

bool names_files(const DataSettings& settings) {
  return !settings.train.empty() || !settings.vali.empty() || !settings.test.empty();
}

void refuse_two_sources(const DataSettings& settings) {
  if (settings.source.empty() || !names_files(settings)) return;
  throw InvalidArgument(
      "data.source cannot be combined with data.train, data.vali or data.test. Set either data.source (a "
      "folder or generated data) or the files.");
}

PartFiles files_of(const DataSettings& settings, std::int64_t fold) {
  const bool single = names_files(settings);
  if (settings.source.empty() && !single) {
    throw InvalidArgument(
        "No data is given. Set data.source to a folder or to synth:NAME, or data.train and data.test to "
        "files.");
  }
  if (!single) return find_part_files(settings.source, fold);
  if (settings.train.empty() || settings.test.empty()) {
    throw InvalidArgument(
        fmt::format("data.{} is missing; data.{} requires it.", settings.train.empty() ? "train" : "test",
                    settings.train.empty() ? (settings.test.empty() ? "vali" : "test") : "train"));
  }
  if (fold != 1) {
    throw InvalidArgument(
        fmt::format("--fold must be 1, not {}: data.train and data.test are one fold.", fold));
  }
  PartFiles files{{settings.train}, {}, {settings.test}};
  if (!settings.vali.empty()) files.vali = {settings.vali};
  return files;
}

class PartLoader {
 public:
  PartLoader(const DataSettings& settings, ExecutionContext& context)
      : cache_(DatasetCache::of_setting(settings.cache)),
        left_(allowed_bytes(settings)),
        context_(context) {}

  Dataset load(const std::vector<std::string>& files) {
    std::vector<Dataset> parts;
    for (const std::string& file : files) {
      parts.push_back(cache_.read(file, {.max_bytes = left_}, context_.pool()));
      left_ -= parts.back().docs() * parts.back().features() * static_cast<std::int64_t>(sizeof(float));
    }
    return join_parts(std::move(parts), context_);
  }

 private:
  DatasetCache cache_;
  std::int64_t left_;
  ExecutionContext& context_;
};

/// As wide as training.
Dataset fitted(Dataset part, const Dataset& train, std::string_view name,
               const std::vector<std::string>& files, ExecutionContext& context) {
  const std::int64_t surplus = part.features() - train.features();
  if (surplus > 0) {
    throw DataError(
        joined(files), 0, 0,
        fmt::format("The {} part has {} features, but the training part has only {}. A model cannot use "
                    "features that it was not trained on: remove them.",
                    name, part.features(), train.features()));
  }
  if (surplus == 0) return part;
  log_info("The {} part has {} features, {} fewer than the training part's {}; the missing ones are 0.",
           name, part.features(), -surplus, train.features());
  return widened(part, train.features(), context);
}

void warn_of_equal_grades(const Dataset& part, std::string_view name) {
  const auto grades = part.all_grades();
  if (std::adjacent_find(grades.begin(), grades.end(), std::not_equal_to<>()) != grades.end()) return;
  log_warning("All {} documents of the {} part have grade {}: nothing can be learned or evaluated.",
              part.docs(), name, int{grades.front()});
}

DataParts generated_parts(const DataSettings& settings, std::int64_t fold, ExecutionContext& context) {
  if (fold != 1) {
    throw InvalidArgument(fmt::format("--fold must be 1, not {}: generated data has only one fold.", fold));
  }
  SyntheticParts parts = make_synthetic(settings.source, context, allowed_bytes(settings));
  return {std::move(parts.train), std::move(parts.vali), std::move(parts.test)};
}

bool is_one_file(const std::string& source) {
  return source == "-" || (!source.empty() && std::filesystem::is_regular_file(source));
}

}  // namespace

std::int64_t count_shared_queries(const Dataset& a, const Dataset& b) {
  std::unordered_set<std::string_view> names;
  for (std::int64_t query = 0; query < b.queries(); ++query) names.insert(b.qid(query));
  std::int64_t shared = 0;
  for (std::int64_t query = 0; query < a.queries(); ++query) shared += names.contains(a.qid(query)) ? 1 : 0;
  return shared;
}

std::int64_t allowed_bytes(const DataSettings& settings) {
  if (settings.max_memory == "auto") return available_memory() / 2;
  if (const auto bytes = parse_bytes(settings.max_memory)) return *bytes;
  throw InvalidArgument(
      fmt::format("data.max_memory must be 'auto' or an amount such as '8GB' or '500MB', not '{}'.",
                  settings.max_memory));
}

DataParts load_parts(const DataSettings& settings, std::int64_t fold, ExecutionContext& context) {
  refuse_two_sources(settings);
  if (is_synthetic(settings.source)) return generated_parts(settings, fold, context);
  const PartFiles files = files_of(settings, fold);
  PartLoader loader(settings, context);
  Dataset train = loader.load(files.train);
  std::optional<Dataset> vali;
  if (!files.vali.empty()) vali = fitted(loader.load(files.vali), train, "validation", files.vali, context);
  Dataset test = fitted(loader.load(files.test), train, "test", files.test, context);

  if (const std::int64_t shared = count_shared_queries(test, train); shared > 0) {
    log_warning(
        "{} of the test part's {} queries have the ID of a training query: their results are not held-out "
        "results.",
        shared, test.queries());
  }
  warn_of_equal_grades(train, "training");
  if (vali) warn_of_equal_grades(*vali, "validation");
  warn_of_equal_grades(test, "test");
  return {std::move(train), std::move(vali), std::move(test)};
}

Dataset load_part(const DataSettings& settings, std::int64_t fold, DataPart part,
                  ExecutionContext& context) {
  if (is_one_file(settings.source)) {
    if (fold != 1)
      throw InvalidArgument(fmt::format("--fold must be 1, not {}: a single file has no folds.", fold));
    Dataset data = PartLoader(settings, context).load({settings.source});
    warn_of_equal_grades(data, "only");
    return data;
  }
  DataParts parts = load_parts(settings, fold, context);
  if (part == DataPart::kTrain) return std::move(parts.train);
  if (part == DataPart::kTest) return std::move(parts.test);
  if (!parts.vali) throw InvalidArgument(fmt::format("'{}' has no validation part.", settings.source));
  return *std::move(parts.vali);
}

}  // namespace olrank
