#include "apps/data/data_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/data/data_loader.h"
#include "core/data/data_settings.h"
#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/inspection.h"
#include "core/data/join.h"
#include "core/data/query_weights.h"
#include "core/data/synthetic.h"
#include "core/data/synthetic_source.h"
#include "core/fair/dataset_groups.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/io/folder.h"
#include "core/random/rng_stream.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"
#include "report/drawing.h"
#include "report/inspection.h"

namespace olrank {

using nlohmann::ordered_json;

void ReadingFlags::declare(CLI::App& app) {
  add_option(app, "--threads", threads, "N", "CPU threads [default: every core]");
  add_option(app, "--max-memory", max_memory, "SIZE", kMaxMemoryHelp);
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

std::string summary_text(const ordered_json& summary) {
  return fmt::format("Wrote {}: {} queries, {} documents, {} features\n",
                     summary["file"].get<std::string>(), summary["queries"].get<std::int64_t>(),
                     summary["docs"].get<std::int64_t>(), summary["features"].get<std::int64_t>());
}

namespace {

class ConvertCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "in", in_, "IN", "LETOR text or binary file; - is standard input")->required();
    add_output(app, "out", out_, "OUT",
               "output file: .olrank is binary, .gz and .zst are compressed text, anything else is "
               "plain text; - is standard output")
        ->required();
    app.add_flag("--sparse", format_.sparse, "omit zeros in text output");
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    ExecutionContext context(flags_.threads);
    const Dataset data = read_any(in_, flags_, context);
    write_any(data, out_, format_);
    if (out_ == "-") return 0;
    const ordered_json summary = summary_of(out_, data);
    return output.print(summary, summary_text(summary));
  }

 private:
  std::string in_;
  std::string out_;
  LetorFormat format_;
  ReadingFlags flags_;
};

class SynthCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "source", source_, "NAME?key=value", "NAME or NAME?key=value&…, as in synth:NAME")
        ->required();
    add_output(app, "--out", out_, "DIR", "output folder")->required();
    app.add_option("--ending", ending_, "file format [default: .txt]")
        ->check(CLI::IsMember({".txt", ".txt.gz", ".txt.zst", ".olrank"}));
    app.add_flag("--force", force_, "overwrite train, vali and test of this format in the output folder");
    add_option(app, "--max-memory", limits_.max_memory, "SIZE", kMaxMemoryHelp);
    add_option(app, "--threads", threads_, "N", "CPU threads [default: every core]");
  }

  int run(const OutputFlags& output) override {
    for (const char* part : {"train", "vali", "test"}) {
      if (force_ || !std::filesystem::exists(path_of(part))) continue;
      throw_error<InvalidArgument>(
          "'{}' already exists; overwrite it with --force, or choose another folder.", path_of(part));
    }
    ExecutionContext context(threads_);
    const std::string source = is_synthetic(source_) ? source_ : "synth:" + source_;
    const LetorOptions limits = letor_options(limits_);
    const SyntheticParts parts = make_synthetic(source, context, limits.max_bytes, limits.store);
    make_folder(out_);
    ordered_json summaries = ordered_json::array();
    std::string text;
    for (const auto& [part, data] : {std::pair<const char*, const Dataset&>("train", parts.train),
                                     std::pair<const char*, const Dataset&>("vali", parts.vali),
                                     std::pair<const char*, const Dataset&>("test", parts.test)}) {
      write_any(data, path_of(part), {});
      summaries.push_back(summary_of(path_of(part), data));
      text += summary_text(summaries.back());
    }
    return output.print(summaries, text);
  }

 private:
  std::string path_of(const std::string& part) const {
    return (std::filesystem::path(out_) / (part + ending_)).string();
  }

  std::string source_;
  std::string out_;
  DataSettings limits_;
  std::string ending_ = ".txt";
  bool force_ = false;
  int threads_ = available_threads();
};

class InspectCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "path", paths_, "PATH", "data folders or files; - is standard input")->required();
    add_option(app, "--groups", groups_, "SETTINGS",
               "two groups of documents, as key=value,… of [groups]: feature=128,quantile=0.65 or "
               "file=groups.csv; shows their sizes, mean grades and β");
    add_output(app, "--discriminant", discriminant_, "FILE.svg",
               "draw the training part's documents in the plane in which a linear function separates "
               "their grades best; of one PATH");
    add_option(app, "--fold", fold_, "N", "the fold of --groups and --discriminant [default: 1]");
    flags_.declare(app);
  }

  int run(const OutputFlags& output) override {
    ExecutionContext context(flags_.threads);
    if (!groups_.empty()) return show_groups(output, context);
    if (!discriminant_.empty()) return draw_discriminant(output, context);
    LetorOptions options = flags_.options();
    options.layout = FeatureLayout::kDense;
    std::vector<InspectedFile> all;
    bool failed = false;
    std::vector<std::string> failures;
    for (const std::string& path : paths_) {
      for (const std::string& file : files_to_inspect(path)) {
        InspectedFile inspected{file, std::nullopt, {}};
        try {
          inspected.found = inspect_file(file, options, context);
        } catch (const DataError& error) {
          inspected.failure = error.what();
          failures.push_back(inspected.failure);
        }
        if (!output.json && inspected.found) fmt::print("{}", inspection_text(inspected));
        all.push_back(std::move(inspected));
      }
    }
    ordered_json widths = ordered_json::array();
    for (const std::string& path : paths_) {
      std::error_code ignored;
      if (!std::filesystem::is_directory(path, ignored)) continue;
      for (const auto& [sentence, is_error] : compare_widths(path, all)) {
        widths.push_back(sentence);
        failed = failed || is_error;
        if (!output.json) fmt::print("{}\n", sentence);
      }
    }
    ordered_json shared = ordered_json::array();
    for (std::size_t a = 0; a < all.size(); ++a) {
      for (std::size_t b = a + 1; b < all.size(); ++b) {
        if (!all[a].found || !all[b].found) continue;
        const std::int64_t count = count_shared_queries(all[b].found->qids, all[a].found->qids);
        if (count == 0) continue;
        shared.push_back({{"files", {all[a].path, all[b].path}}, {"queries", count}});
        if (!output.json) fmt::print("{} and {} share {} query ids.\n", all[a].path, all[b].path, count);
      }
    }
    if (output.json) {
      ordered_json files = ordered_json::array();
      for (const InspectedFile& inspected : all) files.push_back(inspection_json(inspected));
      fmt::print("{}\n",
                 ordered_json{{"files", files}, {"shared_queries", shared}, {"widths", widths}}.dump(
                     2, ' ', false, ordered_json::error_handler_t::replace));
    }
    failed = failed || !failures.empty();
    if (!output.json && failures.size() == 1) throw Error(failures.front());
    if (!output.json && !failures.empty()) {
      throw_error<Error>("{} of {} files cannot be read. First error: {}", failures.size(), all.size(),
                         failures.front());
    }
    return failed ? static_cast<int>(ExitCode::kFailed) : 0;
  }

 private:
  Dataset training_part(const std::string& path, ExecutionContext& context) const {
    DataSettings data;
    data.source = path;
    data.max_memory = flags_.max_memory;
    data.layout = FeatureLayout::kDense;
    return load_part(data, fold_, DataPart::kTrain, context);
  }

  int draw_discriminant(const OutputFlags& output, ExecutionContext& context) {
    if (paths_.size() != 1)
      throw_error<InvalidArgument>("--discriminant draws one data set, not {}. Name one PATH.",
                                   paths_.size());
    const Dataset train = training_part(paths_.front(), context);
    const Discriminant found = linear_discriminant(train, context);
    const Plot plot = discriminant_figure(found, train.all_grades(), paths_.front());
    write_file_atomically(discriminant_, standalone_svg(draw(plot), Theme::kLight));
    return output.print(
        {{"source", paths_.front()},
         {"docs", train.docs()},
         {"separation", found.separation},
         {"file", discriminant_}},
        fmt::format(
            "{}: {} documents, variance between grades {:.3f} and {:.3f} of that within, drawn in {}\n",
            paths_.front(), train.docs(), found.separation[0], found.separation[1], discriminant_));
  }

  /// The groups of each path's training part; a single file is one.
  int show_groups(const OutputFlags& output, ExecutionContext& context) {
    const GroupSettings settings = parse_group_settings(groups_, "--groups");
    ordered_json all = ordered_json::array();
    std::string text;
    for (const std::string& path : paths_) {
      const Dataset train = training_part(path, context);
      const GroupRule rule(settings, train);
      all.push_back(groups_json(path, settings, rule));
      text += groups_text(path, settings, rule);
    }
    return output.print({{"groups", all}}, text);
  }

  std::vector<std::string> paths_;
  std::string groups_;
  std::string discriminant_;
  std::int64_t fold_ = 1;
  ReadingFlags flags_;
};

class SplitCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "in", in_, "IN", "LETOR text or binary file; - is standard input")->required();
    add_output(app, "--out", out_, "DIR", "output folder")->required();
    parts_flag_ = add_option(app, "--parts", parts_, "N",
                             "number of equal parts S1, S2, …; five parts make five folds [default: 5]");
    for (CLI::Option* share : {app.add_option("--train", train_, "fraction of queries in the training set"),
                               app.add_option("--vali", vali_, "fraction of queries in the validation set"),
                               app.add_option("--test", test_, "fraction of queries in the test set")}) {
      share->type_name("SHARE")->excludes(parts_flag_);
      shares_.push_back(share);
    }
    add_option(app, "--seed", seed_, "N", "random seed [default: 1]");
    app.add_option("--ending", ending_, "file format [default: .txt]")
        ->check(CLI::IsMember({".txt", ".txt.gz", ".txt.zst", ".olrank"}));
    flags_.declare(app);
  }

  int run(const OutputFlags& output) override {
    const std::vector<Part> parts = plan();
    for (const Part& part : parts) {
      if (std::filesystem::exists(path_of(part))) {
        throw_error<InvalidArgument>("'{}' already exists; choose another folder or remove it.",
                                     path_of(part));
      }
    }
    ExecutionContext context(flags_.threads);
    const Dataset data = read_any(in_, flags_, context);
    const std::vector<std::vector<std::int64_t>> queries = deal(parts, data.queries());
    make_folder(out_);
    ordered_json summaries = ordered_json::array();
    std::string text;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const Dataset chosen = select_queries(data, queries[part], context);
      write_any(chosen, path_of(parts[part]), {});
      summaries.push_back(summary_of(path_of(parts[part]), chosen));
      text += summary_text(summaries.back());
    }
    return output.print(summaries, text);
  }

 private:
  struct Part {
    std::string name;
    double share;
  };

  std::string path_of(const Part& part) const {
    return (std::filesystem::path(out_) / (part.name + ending_)).string();
  }

  std::vector<Part> plan() const {
    const bool by_share = std::any_of(shares_.begin(), shares_.end(),
                                      [](const CLI::Option* option) { return option->count() > 0; });
    if (!by_share) {
      if (parts_ < 2) throw_error<InvalidArgument>("--parts must be at least 2, not {}.", parts_);
      std::vector<Part> parts;
      for (int part = 1; part <= parts_; ++part) parts.push_back({fmt::format("S{}", part), 1.0 / parts_});
      return parts;
    }
    if (!(train_ > 0.0 && vali_ >= 0.0 && test_ > 0.0 && std::abs(train_ + vali_ + test_ - 1.0) < 1e-9)) {
      throw_error<InvalidArgument>(
          "--train, --vali and --test must add up to 1, with --train and --test above 0, not {}, {} and "
          "{}.",
          train_, vali_, test_);
    }
    std::vector<Part> parts = {{"train", train_}};
    if (vali_ > 0.0) parts.push_back({"vali", vali_});
    parts.push_back({"test", test_});
    return parts;
  }

  /// The queries of each part, drawn at random and kept in file order.
  std::vector<std::vector<std::int64_t>> deal(const std::vector<Part>& parts, std::int64_t count) const {
    if (count < std::ssize(parts)) {
      throw DataError(in_, 0, 0,
                      fmt::format("{} queries cannot be split into {} parts.", count, parts.size()));
    }
    std::vector<std::int64_t> deck(count);
    std::iota(deck.begin(), deck.end(), 0);
    RngStream rng(make_key({.seed = seed_, .purpose = Purpose::kSplit}), 0);
    rng.shuffle(std::span(deck));
    std::vector<std::vector<std::int64_t>> queries;
    double share = 0.0;
    std::size_t begin = 0;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      share += parts[part].share;
      // Leaves at least one query for this part and for each later one.
      const std::size_t last_end = deck.size() - (parts.size() - 1 - part);
      const auto wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(count)));
      const std::size_t end =
          part + 1 == parts.size() ? deck.size() : std::clamp(wanted, begin + 1, last_end);
      queries.emplace_back(deck.begin() + static_cast<std::ptrdiff_t>(begin),
                           deck.begin() + static_cast<std::ptrdiff_t>(end));
      std::sort(queries.back().begin(), queries.back().end());
      begin = end;
    }
    return queries;
  }

  std::string in_;
  std::string out_;
  int parts_ = 5;
  double train_ = 0.6;
  double vali_ = 0.2;
  double test_ = 0.2;
  std::uint64_t seed_ = 1;
  std::string ending_ = ".txt";
  CLI::Option* parts_flag_ = nullptr;
  std::vector<CLI::Option*> shares_;
  ReadingFlags flags_;
};

}  // namespace

const CommandEntry kDataConvertCommand{
    "data convert", "convert between text and binary (.olrank), losslessly; text may be plain, .gz or .zst",
    make_command<ConvertCommand>};
const CommandEntry kDataSynthCommand{"data synth",
                                     "generate synthetic data: a folder with train, vali and test",
                                     make_command<SynthCommand>};

const CommandEntry kDataInspectCommand{"data inspect",
                                       "show statistics and problems of data sets, with line numbers",
                                       make_command<InspectCommand>};

const CommandEntry kDataSplitCommand{
    "data split", "split by query into S1 to S5, or into train, vali and test", make_command<SplitCommand>};

}  // namespace olrank
