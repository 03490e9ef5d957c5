#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "core/data/data_folder.h"
#include "core/data/data_loader.h"
#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/inspection.h"
#include "core/data/join.h"
#include "core/data/letor_writer.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// Flags that all of `olrank data` has.
struct ReadingFlags {
  int threads = available_threads();
  std::string max_memory = "auto";

  void declare(CLI::App& app) {
    app.add_option("--threads", threads, "how many threads read")->type_name("N");
    app.add_option("--max-memory", max_memory, "what the dense features may take, such as 8GB")
        ->type_name("SIZE");
  }
  LetorOptions options() const {
    DataSettings settings;
    settings.max_memory = max_memory;
    return {.max_bytes = allowed_bytes(settings)};
  }
};

/// LETOR text or a binary data file by its first bytes; neither leaves anything in a cache.
Dataset read_any(const std::string& path, const ReadingFlags& flags, ExecutionContext& context) {
  return DatasetCache().read(path, flags.options(), context.pool());
}

/// By the name's ending: .olrank is the binary form, .gz and .zst are compressed text, "-" is standard
/// output.
void write_any(const Dataset& data, const std::string& path, const LetorFormat& format) {
  if (path.ends_with(".olrank")) {
    write_dataset_file(data, {}, path);
    return;
  }
  if (path == "-") {
    write_letor(data, format, [](std::string_view piece) {
      if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size()) {
        throw IoError("write", "standard output", errno);
      }
    });
    return;
  }
  AtomicFile file(path);
  const auto compressor =
      Compressor::make(compression_of_name(path), [&](std::string_view piece) { file.write(piece); });
  write_letor(data, format, [&](std::string_view piece) { compressor->write(piece); });
  compressor->finish();
  file.commit();
}

ordered_json summary_of(const std::string& path, const Dataset& data) {
  return {{"file", path},
          {"queries", data.queries()},
          {"docs", data.docs()},
          {"features", data.features()},
          {"fingerprint", data.fingerprint().hex()}};
}

void print_summary(const ordered_json& summary) {
  fmt::print("{}: {} queries, {} documents, {} features\n", summary["file"].get<std::string>(),
             summary["queries"].get<std::int64_t>(), summary["docs"].get<std::int64_t>(),
             summary["features"].get<std::int64_t>());
}

/// Feature numbers with runs drawn together: "1-5, 9".
std::string ranges(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

// ---- data inspect

struct Inspected {
  std::string path;
  std::optional<Inspection> found;
  std::string failure;
};

/// The files behind a path: itself, or those of a data folder.
std::vector<std::string> files_behind(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {path};
  std::vector<std::string> files;
  for (std::int64_t fold = 1; fold <= count_folds(path); ++fold) {
    const PartFiles parts = find_part_files(path, fold);
    for (const auto* part : {&parts.train, &parts.vali, &parts.test}) {
      for (const std::string& file : *part) {
        if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
      }
    }
  }
  return files;
}

ordered_json as_json(const Inspected& inspected) {
  if (!inspected.found) return {{"file", inspected.path}, {"error", inspected.failure}};
  const Inspection& found = *inspected.found;
  ordered_json grades = ordered_json::object();
  for (std::size_t grade = 0; grade < found.grades.size(); ++grade) {
    if (found.grades[grade] > 0) grades[std::to_string(grade)] = found.grades[grade];
  }
  ordered_json findings = ordered_json::array();
  for (const auto& finding : found.findings) {
    findings.push_back({{"line", finding.line > 0 ? ordered_json(finding.line) : ordered_json(nullptr)},
                        {"sentence", finding.sentence}});
  }
  return {{"file", inspected.path},
          {"queries", found.queries},
          {"docs", found.docs},
          {"features", found.features},
          {"named_docs", found.named_docs},
          {"grades", grades},
          {"docs_per_query",
           {{"min", found.fewest_docs}, {"median", found.median_docs}, {"max", found.most_docs}}},
          {"queries_without_relevant", found.queries_without_relevant},
          {"queries_scattered", found.queries_scattered},
          {"missing_features", found.missing_features},
          {"constant_features", found.constant_features},
          {"duplicate_docs", found.duplicate_docs},
          {"contradicting_docs", found.contradicting_docs},
          {"duplicate_names", found.duplicate_names},
          {"null_values", found.null_values.count},
          {"fingerprint", found.fingerprint.hex()},
          {"findings", findings}};
}

void print_inspection(const Inspected& inspected) {
  fmt::print("{}\n", inspected.path);
  if (!inspected.found) {
    fmt::print("  {}\n", inspected.failure);
    return;
  }
  const Inspection& found = *inspected.found;
  const auto row = [](std::string_view name, const std::string& text) {
    fmt::print("  {:<22}{}\n", name, text);
  };
  row("queries", fmt::format("{}", found.queries));
  row("documents", fmt::format("{} ({} named)", found.docs, found.named_docs));
  row("features", fmt::format("{}", found.features));
  std::string grades;
  for (std::size_t grade = 0; grade < found.grades.size(); ++grade) {
    if (found.grades[grade] == 0) continue;
    grades +=
        fmt::format("{}{}: {} ({:.1f} %)", grades.empty() ? "" : ", ", grade, found.grades[grade],
                    100.0 * static_cast<double>(found.grades[grade]) / static_cast<double>(found.docs));
  }
  row("grades", grades);
  row("documents per query",
      fmt::format("{} to {}, median {}", found.fewest_docs, found.most_docs, found.median_docs));
  row("no relevant document", fmt::format("{} queries", found.queries_without_relevant));
  if (!found.missing_features.empty()) row("features always 0", ranges(found.missing_features));
  if (!found.constant_features.empty()) row("features constant", ranges(found.constant_features));
  if (found.null_values.count > 0) row("NULL values", fmt::format("{}", found.null_values.count));
  if (found.duplicate_docs > 0) {
    row("duplicates in a query",
        fmt::format("{} documents, {} with another grade", found.duplicate_docs, found.contradicting_docs));
  }
  if (found.duplicate_names > 0) row("names given twice", fmt::format("{}", found.duplicate_names));
  if (found.queries_scattered > 0) row("queries scattered", fmt::format("{}", found.queries_scattered));
  row("fingerprint", found.fingerprint.hex());
  for (const auto& finding : found.findings) {
    fmt::print("  {}{}\n", finding.line > 0 ? fmt::format("{}:{}: ", inspected.path, finding.line) : "",
               finding.sentence);
  }
}

std::int64_t shared_queries(const Inspection& a, const Inspection& b) {
  const std::unordered_set<std::string> names(a.qids.begin(), a.qids.end());
  return std::count_if(b.qids.begin(), b.qids.end(),
                       [&](const std::string& qid) { return names.contains(qid); });
}

class InspectCommand : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override { return "counts, and what looks wrong, with line numbers"; }
  void declare(CLI::App& app) override {
    app.add_option("path", paths_, "data folders or files; - is standard input")
        ->type_name("PATH")
        ->required();
    flags_.declare(app);
  }

  int run(const OutputFlags& output) override {
    ExecutionContext context({}, flags_.threads);
    const LetorOptions options = flags_.options();
    std::vector<Inspected> all;
    bool failed = false;
    for (const std::string& path : paths_) {
      for (const std::string& file : files_behind(path)) {
        Inspected inspected{file, std::nullopt, {}};
        try {
          inspected.found = inspect_file(file, options, context);
        } catch (const DataError& error) {
          inspected.failure = error.what();
          failed = true;
        }
        if (!output.json) print_inspection(inspected);
        all.push_back(std::move(inspected));
      }
    }
    ordered_json shared = ordered_json::array();
    for (std::size_t a = 0; a < all.size(); ++a) {
      for (std::size_t b = a + 1; b < all.size(); ++b) {
        if (!all[a].found || !all[b].found) continue;
        const std::int64_t count = shared_queries(*all[a].found, *all[b].found);
        if (count == 0) continue;
        shared.push_back({{"files", {all[a].path, all[b].path}}, {"queries", count}});
        if (!output.json)
          fmt::print("{} and {} have {} query names in common.\n", all[a].path, all[b].path, count);
      }
    }
    if (output.json) {
      ordered_json files = ordered_json::array();
      for (const Inspected& inspected : all) files.push_back(as_json(inspected));
      fmt::print("{}\n", ordered_json{{"files", files}, {"shared_queries", shared}}.dump(
                             2, ' ', false, ordered_json::error_handler_t::replace));
    }
    return failed ? static_cast<int>(ExitCode::kFailed) : 0;
  }

 private:
  std::vector<std::string> paths_;
  ReadingFlags flags_;
};

// ---- data convert

class ConvertCommand : public Command {
 public:
  std::string name() const override { return "convert"; }
  std::string summary() const override {
    return "text to binary (.olrank) and back, plain, .gz or .zst; exact";
  }
  void declare(CLI::App& app) override {
    app.add_option("in", in_, "LETOR text or a binary file; - is standard input")
        ->type_name("IN")
        ->required();
    app.add_option("out", out_, "its ending says the form; - is standard output")
        ->type_name("OUT")
        ->required();
    app.add_flag("--sparse", format_.sparse, "leave zeros out of text");
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    ExecutionContext context({}, flags_.threads);
    const Dataset data = read_any(in_, flags_, context);
    write_any(data, out_, format_);
    if (out_ == "-") return 0;
    if (output.json) {
      fmt::print("{}\n", summary_of(out_, data).dump(2));
    } else {
      print_summary(summary_of(out_, data));
    }
    return 0;
  }

 private:
  std::string in_;
  std::string out_;
  LetorFormat format_;
  ReadingFlags flags_;
};

// ---- data split

class SplitCommand : public Command {
 public:
  std::string name() const override { return "split"; }
  std::string summary() const override { return "parts by query: S1 to S5, or train, vali and test"; }
  void declare(CLI::App& app) override {
    app.add_option("in", in_, "LETOR text or a binary file; - is standard input")
        ->type_name("IN")
        ->required();
    app.add_option("--out", out_, "folder for the parts")->type_name("DIR")->required();
    parts_flag_ = app.add_option("--parts", parts_, "equal parts S1, S2, …; folds are made of five");
    for (CLI::Option* share : {app.add_option("--train", train_, "share of the queries to train on"),
                               app.add_option("--vali", vali_, "share of the queries to validate on"),
                               app.add_option("--test", test_, "share of the queries to test on")}) {
      share->type_name("SHARE")->excludes(parts_flag_);
      shares_.push_back(share);
    }
    app.add_option("--seed", seed_, "which of the possible splits");
    app.add_option("--ending", ending_, "form of the files: .txt, .txt.gz, .txt.zst or .olrank")
        ->check(CLI::IsMember({".txt", ".txt.gz", ".txt.zst", ".olrank"}));
    flags_.declare(app);
  }

  int run(const OutputFlags& output) override {
    const std::vector<Part> parts = plan();
    for (const Part& part : parts) {
      if (std::filesystem::exists(path_of(part))) {
        throw InvalidArgument(
            fmt::format("'{}' is there already; choose another folder or remove it.", path_of(part)));
      }
    }
    ExecutionContext context({}, flags_.threads);
    const Dataset data = read_any(in_, flags_, context);
    const std::vector<std::vector<std::int64_t>> queries = deal(parts, data.queries());
    std::error_code failed;
    std::filesystem::create_directories(out_, failed);
    if (failed) throw IoError("make", out_, failed.value());
    ordered_json summaries = ordered_json::array();
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const Dataset chosen = select_queries(data, queries[part], context);
      write_any(chosen, path_of(parts[part]), {});
      summaries.push_back(summary_of(path_of(parts[part]), chosen));
      if (!output.json) print_summary(summaries.back());
    }
    if (output.json) fmt::print("{}\n", summaries.dump(2));
    return 0;
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
      if (parts_ < 2)
        throw InvalidArgument(fmt::format("--parts is {}; there must be at least 2.", parts_));
      std::vector<Part> parts;
      for (int part = 1; part <= parts_; ++part) parts.push_back({fmt::format("S{}", part), 1.0 / parts_});
      return parts;
    }
    if (!(train_ > 0.0 && vali_ >= 0.0 && test_ > 0.0 && std::abs(train_ + vali_ + test_ - 1.0) < 1e-9)) {
      throw InvalidArgument(
          fmt::format("--train {}, --vali {} and --test {} must add up to 1, with something to train "
                      "and to test on.",
                      train_, vali_, test_));
    }
    std::vector<Part> parts = {{"train", train_}};
    if (vali_ > 0.0) parts.push_back({"vali", vali_});
    parts.push_back({"test", test_});
    return parts;
  }

  /// The queries of each part: a shuffled deck, cut, each cut back in the file's order.
  std::vector<std::vector<std::int64_t>> deal(const std::vector<Part>& parts, std::int64_t count) const {
    if (count < static_cast<std::int64_t>(parts.size())) {
      throw DataError(in_, 0, 0, fmt::format("{} queries do not fill {} parts.", count, parts.size()));
    }
    std::vector<std::int64_t> deck(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < deck.size(); ++i) deck[i] = static_cast<std::int64_t>(i);
    RngStream rng(make_key({.seed = seed_, .purpose = Purpose::kSplit}), 0);
    rng.shuffle(std::span(deck));
    std::vector<std::vector<std::int64_t>> queries;
    double share = 0.0;
    std::size_t begin = 0;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      share += parts[part].share;
      // At least one query for this part and for each that follows.
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

class DataCommand : public Command {
 public:
  std::string name() const override { return "data"; }
  std::string summary() const override { return "inspect, convert and split data sets"; }
  void declare(CLI::App& app) override {
    commands_.push_back({std::make_unique<InspectCommand>(), nullptr});
    commands_.push_back({std::make_unique<ConvertCommand>(), nullptr});
    commands_.push_back({std::make_unique<SplitCommand>(), nullptr});
    for (auto& [command, parsed] : commands_) {
      parsed = app.add_subcommand(command->name(), command->summary());
      parsed->fallthrough();
      parsed->allow_extras();
      command->declare(*parsed);
    }
    app.require_subcommand(0, 1);
  }
  int run(const OutputFlags& output) override {
    for (auto& [command, app] : commands_) {
      if (app->parsed()) return command->run(output);
    }
    throw InvalidArgument("What to do with data is missing. See 'olrank data --help'.");
  }

 private:
  std::vector<std::pair<std::unique_ptr<Command>, CLI::App*>> commands_;
};

}  // namespace

std::unique_ptr<Command> make_data_command() {
  return std::make_unique<DataCommand>();
}

}  // namespace olrank
