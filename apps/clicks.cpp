#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "logs/click_report.h"
#include "serve/state_folder.h"

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
                   "click model to fit in addition to click rates by rank [default: all that the log has "
                   "the data for]")
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
    request_.choose(model_text_);
    request_.check();
    // A file that cannot be written is found out about before the fit.
    std::optional<AtomicFile> file;
    if (!out_.empty()) {
      require_outside_state(out_, "--out");
      file.emplace(out_);
    }
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
