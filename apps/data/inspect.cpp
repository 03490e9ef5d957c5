#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "apps/data/commands.h"
#include "apps/data/data_files.h"
#include "core/data/data_folder.h"
#include "core/data/data_loader.h"
#include "core/data/inspection.h"
#include "core/error.h"
#include "core/fair/dataset_groups.h"
#include "core/io/atomic_file.h"
#include "report/discriminant.h"
#include "report/discriminant_figure.h"
#include "report/drawing.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// Feature numbers as ranges: "1-5, 9".
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

struct Inspected {
  std::string path;
  std::optional<Inspection> found;
  std::string failure;
};

/// The files of a data folder, or the path itself.
std::vector<std::string> files_of(const std::string& path) {
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
  ordered_json weights;
  if (found.weights) weights = {{"min", found.weights->first}, {"max", found.weights->second}};
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
          {"weights", weights},
          {"fingerprint", found.fingerprint.hex()},
          {"findings", findings}};
}

void print_inspection(const Inspected& inspected) {
  fmt::print("{}\n", inspected.path);
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
  if (found.weights)
    row("weights of queries", fmt::format("{} to {}", found.weights->first, found.weights->second));
  if (!found.missing_features.empty()) row("features always 0", ranges(found.missing_features));
  if (!found.constant_features.empty()) row("constant features", ranges(found.constant_features));
  if (found.null_values.count > 0) row("NULL values", fmt::format("{}", found.null_values.count));
  if (found.duplicate_docs > 0) {
    row("duplicate documents",
        fmt::format("{}, {} with a different grade", found.duplicate_docs, found.contradicting_docs));
  }
  if (found.duplicate_names > 0) row("duplicate names", fmt::format("{}", found.duplicate_names));
  if (found.queries_scattered > 0) row("scattered queries", fmt::format("{}", found.queries_scattered));
  row("fingerprint", found.fingerprint.hex());
  for (const auto& finding : found.findings) {
    fmt::print("  {}{}\n", finding.line > 0 ? fmt::format("{}:{}: ", inspected.path, finding.line) : "",
               finding.sentence);
  }
}

double share_of_docs(const GroupRule& rule, const GroupSummary& group) {
  return static_cast<double>(group.docs) / static_cast<double>(rule.of_train().of_doc.size());
}

/// Two groups have a number where more have a list.
ordered_json one_or_all(const std::vector<double>& values) {
  return values.size() == 1 ? ordered_json(values.front()) : ordered_json(values);
}

ordered_json groups_json(const std::string& path, const GroupSettings& settings, const GroupRule& rule) {
  ordered_json json = {{"source", path}};
  if (settings.feature > 0) {
    json["feature"] = settings.feature;
    json["threshold"] = one_or_all(rule.thresholds());
  } else {
    json["file"] = settings.file;
  }
  for (std::size_t group = 0; group < rule.of_train().summaries.size(); ++group) {
    const GroupSummary& summary = rule.of_train().summaries[group];
    json[std::string(1, letter_of(static_cast<DocGroup>(group)))] = {
        {"docs", summary.docs},
        {"share", share_of_docs(rule, summary)},
        {"mean_grade", summary.mean_grade}};
  }
  json["beta"] = one_or_all(rule.beta());
  return json;
}

void print_groups(const std::string& path, const GroupSettings& settings, const GroupRule& rule) {
  fmt::print("{}\n", path);
  if (settings.feature > 0)
    fmt::print("  {:<22}feature {}, threshold {}\n", "groups by", settings.feature,
               fmt::join(rule.thresholds(), ", "));
  for (std::size_t group = 0; group < rule.of_train().summaries.size(); ++group) {
    const GroupSummary& summary = rule.of_train().summaries[group];
    fmt::print("  group {:<16}{} documents ({:.2f} %), mean grade {:.4f}\n",
               letter_of(static_cast<DocGroup>(group)), summary.docs, 100.0 * share_of_docs(rule, summary),
               summary.mean_grade);
  }
  fmt::print("  {:<22}{:.4f}{}\n", "β", fmt::join(rule.beta(), ", "),
             settings.beta ? "" : ", the ratio of the mean grades");
}

std::int64_t shared_queries(const Inspection& a, const Inspection& b) {
  const std::unordered_set<std::string> names(a.qids.begin(), a.qids.end());
  return std::count_if(b.qids.begin(), b.qids.end(),
                       [&](const std::string& qid) { return names.contains(qid); });
}

/// A part of a data folder whose number of features differs from the training set of its fold.
struct WidthFinding {
  std::string sentence;
  bool is_error;  // more features than the training set: a run would fail
};

std::vector<WidthFinding> compare_widths(const std::string& folder, const std::vector<Inspected>& all) {
  const auto width_of = [&](const std::vector<std::string>& files) {
    std::int64_t width = 0;
    for (const Inspected& inspected : all) {
      if (inspected.found && std::find(files.begin(), files.end(), inspected.path) != files.end()) {
        width = std::max(width, inspected.found->features);
      }
    }
    return width;
  };
  std::vector<WidthFinding> findings;
  for (std::int64_t fold = 1; fold <= count_folds(folder); ++fold) {
    const PartFiles parts = find_part_files(folder, fold);
    const std::int64_t train = width_of(parts.train);
    for (const auto& [name, files] : {std::pair("validation", parts.vali), std::pair("test", parts.test)}) {
      const std::int64_t width = width_of(files);
      if (train == 0 || width == 0 || width == train) continue;
      const std::string place =
          fmt::format("{}, fold {}: The {} set has {} features", folder, fold, name, width);
      findings.push_back(
          width > train
              ? WidthFinding{fmt::format("{}, {} more than the training set ({}); a run would fail.", place,
                                         width - train, train),
                             true}
              : WidthFinding{
                    fmt::format("{}, {} fewer than the training set ({}); missing features count as 0.",
                                place, train - width, train),
                    false});
    }
  }
  return findings;
}

class InspectCommand : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override {
    return "show statistics and problems of data sets, with line numbers";
  }
  void declare(CLI::App& app) override {
    app.add_option("path", paths_, "data folders or files; - is standard input")
        ->type_name("PATH")
        ->required();
    app.add_option("--groups", groups_,
                   "two groups of documents, as key=value,… of [groups]: feature=128,quantile=0.65 or "
                   "file=groups.csv; shows their sizes, mean grades and β")
        ->type_name("SETTINGS");
    app.add_option("--discriminant", discriminant_,
                   "draw the training part's documents in the plane in which a linear function separates "
                   "their grades best; of one PATH")
        ->type_name("FILE.svg");
    app.add_option("--fold", fold_, "the fold of --groups and --discriminant [default: 1]")->type_name("N");
    flags_.declare(app);
  }

  int run(const OutputFlags& output) override {
    ExecutionContext context(flags_.threads);
    if (!groups_.empty()) return show_groups(output, context);
    if (!discriminant_.empty()) return draw_discriminant(output, context);
    LetorOptions options = flags_.options();
    options.layout = FeatureLayout::kDense;
    std::vector<Inspected> all;
    bool failed = false;
    std::vector<std::string> failures;
    for (const std::string& path : paths_) {
      for (const std::string& file : files_of(path)) {
        Inspected inspected{file, std::nullopt, {}};
        try {
          inspected.found = inspect_file(file, options, context);
        } catch (const DataError& error) {
          inspected.failure = error.what();
          failures.push_back(inspected.failure);
        }
        if (!output.json && inspected.found) print_inspection(inspected);
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
        const std::int64_t count = shared_queries(*all[a].found, *all[b].found);
        if (count == 0) continue;
        shared.push_back({{"files", {all[a].path, all[b].path}}, {"queries", count}});
        if (!output.json) fmt::print("{} and {} share {} query ids.\n", all[a].path, all[b].path, count);
      }
    }
    if (output.json) {
      ordered_json files = ordered_json::array();
      for (const Inspected& inspected : all) files.push_back(as_json(inspected));
      fmt::print("{}\n",
                 ordered_json{{"files", files}, {"shared_queries", shared}, {"widths", widths}}.dump(
                     2, ' ', false, ordered_json::error_handler_t::replace));
    }
    failed = failed || !failures.empty();
    if (!output.json && failures.size() == 1) throw Error(failures.front());
    if (!output.json && !failures.empty()) {
      throw Error(fmt::format("{} of {} files cannot be read. First error: {}", failures.size(), all.size(),
                              failures.front()));
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
      throw InvalidArgument(
          fmt::format("--discriminant draws one data set, not {}. Name one PATH.", paths_.size()));
    const Dataset train = training_part(paths_.front(), context);
    const Discriminant found = linear_discriminant(train, context);
    const Plot plot = discriminant_figure(found, train.all_grades(), paths_.front());
    write_file_atomically(discriminant_, standalone_svg(draw(plot), Theme::kLight));
    if (output.json) {
      fmt::print("{}\n", ordered_json{{"source", paths_.front()},
                                      {"docs", train.docs()},
                                      {"separation", found.separation},
                                      {"file", discriminant_}}
                             .dump(2));
    } else {
      fmt::print(
          "{}: {} documents, variance between grades {:.3f} and {:.3f} of that within, drawn in {}\n",
          paths_.front(), train.docs(), found.separation[0], found.separation[1], discriminant_);
    }
    return 0;
  }

  /// The groups of each path's training part; a single file is one.
  int show_groups(const OutputFlags& output, ExecutionContext& context) {
    const GroupSettings settings = parse_group_settings(groups_, "--groups");
    ordered_json all = ordered_json::array();
    for (const std::string& path : paths_) {
      const Dataset train = training_part(path, context);
      const GroupRule rule(settings, train);
      if (output.json) {
        all.push_back(groups_json(path, settings, rule));
      } else {
        print_groups(path, settings, rule);
      }
    }
    if (output.json) fmt::print("{}\n", ordered_json{{"groups", all}}.dump(2));
    return 0;
  }

  std::vector<std::string> paths_;
  std::string groups_;
  std::string discriminant_;
  std::int64_t fold_ = 1;
  ReadingFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_data_inspect_command() {
  return std::make_unique<InspectCommand>();
}

}  // namespace olrank
