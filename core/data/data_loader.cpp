#include "core/data/data_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/data/dataset_cache.h"
#include "core/data/doc_table.h"
#include "core/data/join.h"
#include "core/data/query_weights.h"
#include "core/data/synthetic.h"
#include "core/data/synthetic_source.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

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
    throw_error<InvalidArgument>(
        "data.{} is missing; data.{} requires it.", settings.train.empty() ? "train" : "test",
        settings.train.empty() ? (settings.test.empty() ? "vali" : "test") : "train");
  }
  if (fold != 1) {
    throw_error<InvalidArgument>("--fold must be 1, not {}: data.train and data.test are one fold.", fold);
  }
  PartFiles files{{settings.train}, {}, {settings.test}};
  if (!settings.vali.empty()) files.vali = {settings.vali};
  return files;
}

constexpr std::string_view kAutomatic = "auto";

class PartLoader {
 public:
  PartLoader(const DataSettings& settings, ExecutionContext& context)
      : cache_(DatasetCache::of_setting(settings.cache)),
        options_(letor_options(settings)),
        context_(context) {}

  Dataset load(const std::vector<std::string>& files) {
    std::vector<Dataset> parts;
    std::int64_t docs = 0;
    std::int64_t own = 0;
    std::size_t widest = 0;
    for (const std::string& file : files) {
      parts.push_back(cache_.read(file, options_, context_.pool()));
      const std::int64_t bytes = parts.back().all_rows().bytes();
      options_.max_bytes = std::max<std::int64_t>(0, options_.max_bytes - bytes);
      own += bytes;
      docs += parts.back().docs();
      if (parts.back().features() > parts[widest].features()) widest = parts.size() - 1;
    }
    warn_of_missing_weights(files);
    if (std::none_of(parts.begin(), parts.end(), [](const Dataset& part) { return part.is_sparse(); }))
      check_widening(docs, parts[widest].features(), own, files, files[widest]);
    try {
      Dataset::Contents contents = join_parts(std::move(parts), context_).contents();
      contents.source = joined(files);
      return Dataset(std::move(contents));
    } catch (const InvalidArgument& error) {
      throw DataError(joined(files), 0, 0, error.what());
    }
  }

  /// The parts from now on are read without weights.
  void leave_weights() { options_.weights = false; }

  /// A part as wide as `features`, those of another file.
  Dataset widen(const Dataset& part, std::int64_t features, const std::vector<std::string>& files,
                const std::string& widest) {
    if (!part.is_sparse()) check_widening(part.docs(), features, part.all_rows().bytes(), files, widest);
    return widened(part, features, context_);
  }

 private:
  static constexpr std::int64_t kValue = sizeof(float);

  void warn_of_missing_weights(const std::vector<std::string>& files) const {
    if (!options_.weights) return;
    const auto has_weights = [](const std::string& file) { return !weights_file_of(file).empty(); };
    const auto without = std::find_if_not(files.begin(), files.end(), has_weights);
    if (without == files.end() || std::none_of(files.begin(), files.end(), has_weights)) return;
    log_warning(
        "'{0}' has no file '{0}.weight', and other files of its part have one: its queries have the "
        "weight 1.",
        *without);
  }

  /// Throws if documents that need `own` bytes as they are would take too much at that width.
  void check_widening(std::int64_t docs, std::int64_t features, std::int64_t own,
                      const std::vector<std::string>& files, const std::string& widest) {
    const double bytes =
        static_cast<double>(docs) * static_cast<double>(features) * static_cast<double>(kValue);
    const double more = bytes - static_cast<double>(own);
    if (more <= 0.0) return;
    double text = 0.0;
    for (const std::string& file : files) text += text_bytes_of(file);
    const bool wide = options_.refuse_wide && is_too_wide(bytes, text);
    const bool stored = options_.store != nullptr && bytes <= options_.store->most_bytes_of(text);
    if (wide || (more > static_cast<double>(options_.max_bytes) && !stored)) {
      throw_data_error(joined(files), 0, 0,
                       "With feature {} of {}, {} documents become a dense matrix of {}, {}. Renumber the "
                       "features, or {} --max-memory.",
                       features, widest, docs, readable_bytes(bytes),
                       wide ? "nearly all zeros" : "more than --max-memory allows",
                       wide ? "give" : "raise");
    }
    options_.max_bytes = std::max<std::int64_t>(0, options_.max_bytes - static_cast<std::int64_t>(more));
  }

  DatasetCache cache_;
  LetorOptions options_;  // max_bytes: what is left of it
  ExecutionContext& context_;
};

/// Makes the part as wide as training.
Dataset fitted(Dataset part, const Dataset& train, std::string_view name, const PartFiles& all,
               const std::vector<std::string>& files, PartLoader& loader, ExecutionContext& context) {
  if (train.is_sparse()) part = as_sparse(part, context.pool());
  const std::int64_t surplus = part.features() - train.features();
  if (surplus > 0) {
    throw_data_error(joined(files), 0, 0,
                     "The {} part has {} features, but the training part has only {}. A model cannot use "
                     "features that it was not trained on: remove them.",
                     name, part.features(), train.features());
  }
  if (surplus == 0) return part;
  log_info("The {} part has {} features, {} fewer than the training part's {}; the missing ones are 0.",
           name, part.features(), -surplus, train.features());
  return loader.widen(part, train.features(), files, joined(all.train));
}

void warn_of_equal_grades(const Dataset& part, std::string_view name) {
  const auto grades = part.all_grades();
  if (std::adjacent_find(grades.begin(), grades.end(), std::not_equal_to<>()) != grades.end()) return;
  log_warning("All {} documents of the {} part have grade {}: nothing can be learned or evaluated.",
              part.docs(), name, int{grades.front()});
}

/// Parts in the wanted layout, and all in one.
DataParts laid_out(DataParts parts, FeatureLayout layout, ExecutionContext& context) {
  const bool any_sparse =
      parts.train.is_sparse() || (parts.vali && parts.vali->is_sparse()) || parts.test.is_sparse();
  if (!any_sparse && layout != FeatureLayout::kSparse) return parts;
  parts.train = as_sparse(parts.train, context.pool());
  if (parts.vali) parts.vali = as_sparse(*parts.vali, context.pool());
  parts.test = as_sparse(parts.test, context.pool());
  return parts;
}

DataParts generated_parts(const DataSettings& settings, std::int64_t fold, ExecutionContext& context) {
  if (fold != 1) {
    throw_error<InvalidArgument>("--fold must be 1, not {}: generated data has only one fold.", fold);
  }
  const LetorOptions options = letor_options(settings);
  SyntheticParts parts = make_synthetic(settings.source, context, options.max_bytes, options.store);
  return laid_out({std::move(parts.train), std::move(parts.vali), std::move(parts.test)}, settings.layout,
                  context);
}

bool is_one_file(const std::string& source) {
  return source == "-" || (!source.empty() && std::filesystem::is_regular_file(source));
}

constexpr std::int64_t kFolds = 5;

/// The one file of that stem, in whichever form it is there.
std::optional<std::string> find_file(const std::filesystem::path& folder, const std::string& stem) {
  std::vector<std::string> found;
  for (const char* ending : {".txt", ".txt.gz", ".txt.zst", ".olrank"}) {
    const std::filesystem::path path = folder / (stem + ending);
    std::error_code unreadable;
    // A link to nothing is found, too, so that the part is refused and not taken for one that is not there.
    if (std::filesystem::exists(std::filesystem::symlink_status(path, unreadable)))
      found.push_back(path.string());
  }
  if (found.empty()) return std::nullopt;
  if (found.size() > 1) {
    throw_data_error(folder.string(), 0, 0, "Found {}. Remove or rename all but one of them.",
                     joined(found));
  }
  return found.front();
}

std::optional<PartFiles> find_named_parts(const std::filesystem::path& folder) {
  const auto train = find_file(folder, "train");
  const auto test = find_file(folder, "test");
  if (!train || !test) return std::nullopt;
  PartFiles files{{*train}, {}, {*test}};
  if (const auto vali = find_file(folder, "vali")) files.vali = {*vali};
  return files;
}

/// All of S1 … S5, or nothing when none is there.
std::optional<std::array<std::string, kFolds>> find_numbered_parts(const std::filesystem::path& folder) {
  std::array<std::string, kFolds> parts;
  std::vector<std::string> missing;
  for (std::int64_t part = 1; part <= kFolds; ++part) {
    const std::string stem = fmt::format("S{}", part);
    if (const auto file = find_file(folder, stem)) {
      parts[part - 1] = *file;
    } else {
      missing.push_back(stem);
    }
  }
  if (std::ssize(missing) == kFolds) return std::nullopt;
  if (!missing.empty()) {
    throw_data_error(folder.string(), 0, 0, "{} {} missing; folds are made from all five parts S1 to S5.",
                     joined(missing), missing.size() == 1 ? "is" : "are");
  }
  return parts;
}

[[noreturn]] void refuse_folder(const std::filesystem::path& folder) {
  std::error_code unreadable;
  const std::filesystem::directory_iterator entries(folder, unreadable);
  if (unreadable) throw IoError("read the folder", folder.string(), unreadable.value());
  throw_error<InvalidArgument>(
      "'{}' contains no data set in a known layout: train and test (and optionally vali), folders Fold1 to "
      "Fold5 with these files, or S1 to S5, each as .txt, .txt.gz, .txt.zst or .olrank. Pass the files "
      "themselves (in an experiment, data.train and data.test), or create the parts with 'olrank data "
      "split'.",
      folder.string());
}

void refuse_fold(const std::filesystem::path& folder, std::int64_t fold, std::int64_t folds) {
  if (fold >= 1 && fold <= folds) return;
  throw InvalidArgument(
      folds == 1 ? fmt::format("--fold must be 1, not {}: '{}' has only one fold.", fold, folder.string())
                 : fmt::format("--fold must be between 1 and {}, not {}: '{}' has {} folds.", folds, fold,
                               folder.string(), folds));
}

void need_folder(const std::filesystem::path& folder) {
  std::error_code unreadable;
  const auto status = std::filesystem::status(folder, unreadable);
  if (!std::filesystem::exists(status)) throw IoError("read", folder.string(), ENOENT);
  if (!std::filesystem::is_directory(status)) throw IoError("open the folder", folder.string(), ENOTDIR);
}

}  // namespace

std::int64_t count_shared_queries(std::span<const std::string> a, std::span<const std::string> b) {
  const std::unordered_set<std::string_view> names(b.begin(), b.end());
  return std::count_if(a.begin(), a.end(), [&](const std::string& qid) { return names.contains(qid); });
}

std::int64_t allowed_bytes(const DataSettings& settings) {
  if (settings.max_memory == kAutomatic) return available_memory() / 2;
  if (const auto bytes = parse_bytes(settings.max_memory)) return *bytes;
  throw_error<InvalidArgument>(
      "data.max_memory must be 'auto' or an amount such as '8GB' or '500MB', not '{}'.",
      settings.max_memory);
}

LetorOptions letor_options(const DataSettings& settings) {
  LetorOptions options;
  options.max_bytes = allowed_bytes(settings);
  options.refuse_wide = settings.max_memory == kAutomatic;
  options.layout = settings.layout;
  options.weights = settings.weights;
  if (options.refuse_wide) return options;
  const std::filesystem::path cache = DatasetCache::of_setting(settings.cache).folder();
  options.store = std::make_shared<FeatureStore>(
      options.max_bytes, cache.empty() ? std::filesystem::temp_directory_path() : cache);
  return options;
}

DataParts load_parts(const DataSettings& settings, std::int64_t fold, ExecutionContext& context) {
  refuse_two_sources(settings);
  if (is_synthetic(settings.source)) return generated_parts(settings, fold, context);
  const PartFiles files = files_of(settings, fold);
  PartLoader loader(settings, context);
  Dataset train = loader.load(files.train);
  loader.leave_weights();
  std::optional<Dataset> vali;
  if (!files.vali.empty())
    vali = fitted(loader.load(files.vali), train, "validation", files, files.vali, loader, context);
  Dataset test = fitted(loader.load(files.test), train, "test", files, files.test, loader, context);

  if (const std::int64_t shared = count_shared_queries(test.contents().qids, train.contents().qids);
      shared > 0) {
    log_warning(
        "{} of the test part's {} queries have the ID of a training query: their results are not held-out "
        "results.",
        shared, test.queries());
  }
  warn_of_equal_grades(train, "training");
  if (vali) warn_of_equal_grades(*vali, "validation");
  warn_of_equal_grades(test, "test");
  return laid_out({std::move(train), std::move(vali), std::move(test)}, settings.layout, context);
}

Dataset load_part(const DataSettings& settings, std::int64_t fold, DataPart part,
                  ExecutionContext& context) {
  if (is_one_file(settings.source)) {
    if (fold != 1)
      throw_error<InvalidArgument>("--fold must be 1, not {}: a single file has no folds.", fold);
    Dataset data = PartLoader(settings, context).load({settings.source});
    if (settings.layout == FeatureLayout::kSparse) data = as_sparse(data, context.pool());
    warn_of_equal_grades(data, "only");
    return data;
  }
  DataParts parts = load_parts(settings, fold, context);
  if (part == DataPart::kTrain) return std::move(parts.train);
  if (part == DataPart::kTest) return std::move(parts.test);
  if (!parts.vali) throw_error<InvalidArgument>("'{}' has no validation part.", settings.source);
  return *std::move(parts.vali);
}

std::int64_t count_folds(const std::string& folder) {
  need_folder(folder);
  if (find_named_parts(folder)) return 1;
  std::int64_t folds = 0;
  while (find_named_parts(std::filesystem::path(folder) / fmt::format("Fold{}", folds + 1))) ++folds;
  if (folds > 0) return folds;
  if (find_numbered_parts(folder)) return kFolds;
  refuse_folder(folder);
}

PartFiles find_part_files(const std::string& folder, std::int64_t fold) {
  refuse_fold(folder, fold, count_folds(folder));
  if (const auto files = find_named_parts(folder)) return *files;
  if (const auto files = find_named_parts(std::filesystem::path(folder) / fmt::format("Fold{}", fold)))
    return *files;
  const auto parts = find_numbered_parts(folder);
  const auto part = [&](std::int64_t steps) { return (*parts)[(fold - 1 + steps) % kFolds]; };
  return {{part(0), part(1), part(2)}, {part(3)}, {part(4)}};
}

}  // namespace olrank
