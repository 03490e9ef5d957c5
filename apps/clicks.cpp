#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/command_group.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "core/text/nearest.h"
#include "serve/click_report.h"

namespace olrank {
namespace {

class ClicksFitCommand : public Command {
 public:
  std::string name() const override { return "fit"; }
  std::string summary() const override { return "fit click models to a log of shown lists"; }

  void declare(CLI::App& app) override {
    app.add_option(
           "--log", request_.log.log,
           "feedback.jsonl of a service or its state folder, a trace of a trial, or recorded feedback")
        ->type_name("FILE");
    app.add_option("--model", model_text_,
                   "what is fitted beside click rates by rank [default: all that the log has the data for]")
        ->type_name("pbm|cascade|dcm|dbn|ubm|two-tower|all");
    app.add_option("--holdout", request_.log.holdout,
                   "share of lists, chosen by hash, that judge the models [default: 0.2]")
        ->type_name("P");
    app.add_option("--at", request_.log.ranks, "ranks that count [default: 100]")->type_name("K");
    app.add_option("--iterations", request_.fit.iterations,
                   "largest number of steps of expectation maximisation [default: 100]")
        ->type_name("N");
    app.add_option("--out", out_, "file for the results as JSON")->type_name("FILE");
  }

  int run(const OutputFlags& output) override {
    check_usage();
    // A file that cannot be written is found out about before the fit.
    std::optional<AtomicFile> file;
    if (!out_.empty()) file.emplace(out_);
    const ClickReport report = report_clicks(request_);
    const std::string json = dump_json(click_report_json(request_, report), 2) + "\n";
    write_output(output.json ? json : click_report_text(report, output.columns()));
    if (file) {
      file->write(json);
      file->commit();
    }
    return 0;
  }

 private:
  void check_usage() {
    if (request_.log.log.empty()) throw InvalidArgument("--log is required: name a log of shown lists.");
    if (!(request_.log.holdout > 0.0 && request_.log.holdout < 1.0))
      throw InvalidArgument(
          fmt::format("--holdout must be above 0 and below 1, not {}.", request_.log.holdout));
    if (request_.log.ranks < 1 || request_.log.ranks > 1000)
      throw InvalidArgument(fmt::format("--at must be from 1 to 1000, not {}.", request_.log.ranks));
    if (request_.fit.iterations < 1 || request_.fit.iterations > 100'000)
      throw InvalidArgument(
          fmt::format("--iterations must be from 1 to 100000, not {}.", request_.fit.iterations));
    choose_model();
  }

  void choose_model() {
    if (model_text_ == "all") return;
    std::vector<std::string> names;
    for (const auto& [model, name] : EnumNames<FittedModel>::values) {
      if (model == FittedModel::kRankOnly) continue;  // it is always fitted
      if (name == model_text_) request_.models = {model};
      names.emplace_back(name);
    }
    names.emplace_back("all");
    if (request_.models.empty())
      throw InvalidArgument(fmt::format("--model {}", must_be_one_of(model_text_, names)));
  }

  ClickReportRequest request_;
  std::string model_text_ = "all";
  std::string out_;
};

}  // namespace

std::unique_ptr<Command> make_clicks_command() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<ClicksFitCommand>());
  return std::make_unique<CommandGroup>("clicks", "learn from a log how users read lists",
                                        "No subcommand given. See 'olrank clicks --help'.",
                                        std::move(commands));
}

}  // namespace olrank
