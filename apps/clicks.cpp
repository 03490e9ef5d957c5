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

namespace olrank {
namespace {

class ClicksFitCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--log", request_.log.log, "FILE",
               "feedback.jsonl of a service or its state folder, a trace of a trial, or recorded feedback");
    add_option(app, "--model", model_text_, "pbm|cascade|dcm|dbn|ubm|two-tower|trust|all",
               "click model to fit in addition to click rates by rank [default: all that the log has "
               "the data for]");
    add_option(app, "--holdout", request_.log.holdout, "P",
               "share of lists, chosen by hash, that judge the models [default: 0.2]");
    add_option(app, "--at", request_.log.ranks, "K", "ranks that count [default: 100]");
    add_option(app, "--iterations", request_.fit.iterations, "N",
               "largest number of steps of expectation maximisation [default: 100]");
    add_output(app, "--out", out_, "FILE", "file for the results as JSON");
  }

  int run(const OutputFlags& output) override {
    request_.choose(model_text_);
    request_.check();
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
  ClickReportRequest request_;
  std::string model_text_ = "all";
  std::string out_;
};

}  // namespace

const CommandEntry kClicksFitCommand{"clicks fit", "fit click models to a log of shown lists",
                                     make_command<ClicksFitCommand>};

}  // namespace olrank
