#include <fmt/format.h>

#include <string>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/runtime/log.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"
#include "core/throw_error.h"
#include "jobs/recommending/recommender_study.h"
#include "jobs/tuning/tuning.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

class TuneCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "config", file_, "FILE", "configuration file (TOML) with a [sweep]");
    add_option(
        app, "--by", by_, "NAME",
        "choose by the area under this curve: offline, online, or both (their mean); or worst: by the "
        "10th percentile over seeds, on the fold and with the user where it is lowest [default: "
        "offline]");
    add_option(app, "--per", per_, "NAME", "scope of a choice: ranker or fold-and-user [default: ranker]");
    app.add_flag("--print-config", print_, "print the resolved configuration and exit");
    app.add_flag("--dry-run", dry_run_, "print grid points, trials and estimated time, and exit");
    experiment_.declare(app);
    flags_.declare(app, &SearchSettings::schema());
  }
  int run(const OutputFlags& output) override {
    if (file_.empty())
      throw InvalidArgument(
          "No configuration file given. Usage: olrank tune FILE; see 'olrank tune --help'.");
    if (is_recommend_study(file_)) return tune_recommenders(output);
    const Configuration configuration = resolve_configuration(fs::path(file_), flags_.overrides());
    refuse_study("tune", configuration);
    const ChoiceRule rule = {parse_choice<SweepCriterion>("--by", by_),
                             parse_choice<ChoicePer>("--per", per_)};
    if (print_) {
      fmt::print("{}", print_configuration(configuration));
      return 0;
    }
    if (configuration.sweep.empty()) {
      throw_error<InvalidArgument>(
          "{} has no [sweep]; add one with the values to try, such as alpha = [0.1, 1], or use 'olrank "
          "run'.",
          file_);
    }
    const ExperimentRequest request = experiment_.request();
    if (dry_run_) {
      write_output(tuning_dry_run(configuration, rule, request, output.form()));
      return 0;
    }
    return run_tuning(configuration, rule, request, output.command_line, output.form(), write_output);
  }

 private:
  /// A study that keeps of each kind the value of the best validation.
  int tune_recommenders(const OutputFlags& output) const {
    RecommenderStudyRequest request{.file = file_, .out = "runs/tune"};
    request.choose = true;
    for (const SettingOverride& override : flags_.overrides()) {
      if (override.table != "run" || override.key != "out") {
        throw_error<InvalidArgument>(
            "{} does not apply to a study of recommenders: write its settings into {}.", override.origin,
            file_);
      }
      request.out = override.text;
    }
    return run_recommender_study(request, output.command_line, output.form(), write_output);
  }

  std::string file_;
  std::string by_ = "offline";
  std::string per_ = "ranker";
  bool print_ = false;
  bool dry_run_ = false;
  ExperimentFlags experiment_;
  SettingFlags flags_;
};

}  // namespace

const CommandEntry kTuneCommand{"tune", "tune swept settings on the validation set, then test the winners",
                                make_command<TuneCommand>};

}  // namespace olrank
