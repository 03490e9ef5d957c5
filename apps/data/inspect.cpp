#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/data/data_files.h"
#include "core/data/data_loader.h"
#include "core/data/inspection.h"
#include "core/fair/dataset_groups.h"
#include "core/io/atomic_file.h"
#include "core/throw_error.h"
#include "report/discriminant.h"
#include "report/drawing.h"
#include "report/inspection_text.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

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
    output.print(
        {{"source", paths_.front()},
         {"docs", train.docs()},
         {"separation", found.separation},
         {"file", discriminant_}},
        fmt::format(
            "{}: {} documents, variance between grades {:.3f} and {:.3f} of that within, drawn in {}\n",
            paths_.front(), train.docs(), found.separation[0], found.separation[1], discriminant_));
    return 0;
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
    output.print({{"groups", all}}, text);
    return 0;
  }

  std::vector<std::string> paths_;
  std::string groups_;
  std::string discriminant_;
  std::int64_t fold_ = 1;
  ReadingFlags flags_;
};

}  // namespace

const CommandEntry kDataInspectCommand{"data inspect",
                                       "show statistics and problems of data sets, with line numbers",
                                       make_command<InspectCommand>};

}  // namespace olrank
