#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/io/atomic_file.h"
#include "core/runtime/log.h"
#include "core/settings/toml_document.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/covariance/covariance_study.h"
#include "jobs/experiment_run.h"
#include "jobs/settings/configuration.h"
#include "models/ranker_kinds.h"
#include "studies/generalisation/generalisation_findings.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

void write_at_once(std::string_view text) {
  write_output(text);
  flush_output();
}

/// A study is of networks: covariances and ensembles.
bool is_network_with(const RankerKindRow& row, OrderEvidence evidence) {
  return row.forms == ModelForms::kNetwork && row.evidence == evidence;
}

class BenchCovarianceCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "config", file_, "FILE", "configuration file (TOML) with a [study]; optional");
    app.add_flag("--print-config", print_, "print the resolved configuration and exit");
    app.add_flag("--dry-run", dry_run_, "print trials, memory and estimated time, and exit");
    experiment_.declare(app);
    flags_.declare(app, &StudySettings::schema());
  }
  int run(const OutputFlags& output) override {
    const std::vector<SettingOverride> overrides = setting_overrides();
    const Configuration configuration = resolve(overrides);
    if (print_) return printed(print_configuration(configuration));
    const ExperimentRequest request = experiment_.request();
    if (dry_run_) return printed(covariance_study_dry_run(configuration, request, output.form()));
    return run_covariance_study(configuration, request, output.command_line, output.form(), write_at_once);
  }

 private:
  std::optional<fs::path> file() const {
    return file_.empty() ? std::nullopt : std::optional<fs::path>(file_);
  }

  /// The overrides, with olranknet as the kind if the file has no ranker, and `--alpha matched` as a study
  /// setting.
  std::vector<SettingOverride> setting_overrides() const {
    std::vector<SettingOverride> overrides;
    const TomlDocument document = file() ? read_toml(*file()) : TomlDocument{};
    const bool has_ranker = std::any_of(document.tables.begin(), document.tables.end(),
                                        [](const auto& table) { return table.name == "ranker"; });
    if (!has_ranker) overrides.push_back({"ranker", "", "kind", "olranknet", "bench covariance"});
    for (SettingOverride override : flags_.overrides()) {
      if (override.table == "ranker" && override.key == "alpha" &&
          override.text == name_of(StudyAlpha::kMatched)) {
        override.table = "study";
      }
      refuse_study_axis(override);
      overrides.push_back(std::move(override));
    }
    return overrides;
  }

  static void refuse_study_axis(const SettingOverride& override) {
    if (override.table != "ranker") return;
    for (const auto& [key, axis] : {std::pair{"width", "--widths"},
                                    {"depth", "--depths"},
                                    {"covariance", "--structures"},
                                    {"budget", "--structures inducing-N"},
                                    {"members", "--structures ensemble-N"},
                                    {"noise_variance", "--noise-variances"},
                                    {"shadow", "--study-exact-widths"}}) {
      if (override.key == key)
        throw_error<InvalidArgument>("{}: The study varies this setting; use {}.", override.origin, axis);
    }
  }

  Configuration resolve(const std::vector<SettingOverride>& overrides) const {
    Configuration configuration = resolve_configuration(file(), overrides);
    if (!configuration.sweep.empty())
      throw_error<InvalidArgument>("'olrank bench covariance' does not support [sweep]; remove it from {}.",
                                   file_);
    refuse_search("bench covariance", configuration);
    if (!configuration.study) configuration.study.emplace();
    const StudyBase base = base_of(configuration, overrides);
    configuration.rankers = {base.network};
    if (has_ensembles(*configuration.study)) configuration.rankers.push_back(base.ensemble);
    if (configuration.study->alpha == StudyAlpha::kMatched &&
        base.network.explore.alpha_schedule != AlphaSchedule::kConstant) {
      throw InvalidArgument("--alpha matched requires --alpha-schedule constant.");
    }
    return configuration;
  }

  /// Ensembles take their settings from the file's p2neurrank [[ranker]]. Without one, they use that kind's
  /// defaults with the network's other settings.
  StudyBase base_of(const Configuration& configuration, std::vector<SettingOverride> overrides) const {
    StudyBase base;
    std::size_t networks = 0;
    std::size_t ensembles = 0;
    for (const RankerSettings& ranker : configuration.rankers) {
      const RankerKindRow& row = row_of(ranker.kind);
      if (is_network_with(row, OrderEvidence::kWidths)) {
        base.network = ranker;
        ++networks;
      } else if (is_network_with(row, OrderEvidence::kVotes)) {
        base.ensemble = ranker;
        ++ensembles;
      } else {
        throw_error<InvalidArgument>(
            "A study supports olranknet and ollambdarank, but ranker '{}' is neither.", ranker.name);
      }
    }
    if (networks != 1 || ensembles > 1) {
      throw InvalidArgument(
          "A study requires exactly one [[ranker]] of kind olranknet or ollambdarank, and accepts at most "
          "one of kind p2neurrank for its ensembles.");
    }
    if (ensembles > 0) return base;
    overrides.push_back(
        {"ranker", "", "kind", std::string(name_of(RankerKind::kP2NeurRank)), "bench covariance"});
    base.ensemble = resolve_configuration(file(), overrides, IgnoredSettings::kDrop).rankers.front();
    base.ensemble.name = name_of(RankerKind::kP2NeurRank);
    return base;
  }

  std::string file_;
  bool print_ = false;
  bool dry_run_ = false;
  ExperimentFlags experiment_;
  SettingFlags flags_;
};

const std::vector<std::string> kExperimentNames = {"A", "B", "C", "D", "E", "F"};
const std::vector<std::string> kSizeNames = {"small", "full"};

class BenchGeneralisationCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--experiments", experiments_, "LIST",
               "which of A to F: list length, slopes, algorithms, norms, noise, rankings [default: "
               "A,B,C,D,E, and F with --data]")
        ->delimiter(',');
    add_option(app, "--seeds", seeds_, "LIST", "such as 1-20 [default: 1-20, or 1-3 with --size small]");
    app.add_option("--size", size_, "small or full; the next flags change single sizes [default: full]");
    add_option(app, "--lengths", lengths_, "LIST", "documents of a query, m, in A and B");
    add_option(app, "--queries", queries_, "LIST", "training queries, n, in A");
    add_option(app, "--online-queries", online_, "LIST", "training queries, n, in C and E");
    add_option(app, "--widths", widths_, "LIST", "features, d, in D");
    add_option(app, "--held-out", held_out_, "N", "held-out queries of A at most")
        ->check(CLI::Range(100, 1000000));
    add_option(app, "--data", data_, "DIR", "folders of real lists, for A and F")->delimiter(',');
    add_option(app, "--out", out_, "DIR", "output folder [default: runs/generalisation]");
    add_option(app, "--jobs", jobs_, "N", "cells at once [default: 1]")->check(CLI::Range(1, 4096));
    request_.declare(app);
  }

  int run(const OutputFlags& output) override {
    return run_generalisation(plan_without_data(), {data_, out_, jobs_}, request_.request(),
                              output.command_line, output.form(), write_at_once);
  }

 private:
  static std::vector<std::int64_t> integers(const char* flag, const std::string& text,
                                            std::int64_t lowest) {
    std::vector<std::int64_t> numbers;
    try {
      numbers = std::get<std::vector<std::int64_t>>(parse_setting(SettingKind::kIntegers, text));
    } catch (const InvalidArgument& error) {
      throw_error<InvalidArgument>("{}: {}", flag, error.what());
    }
    if (numbers.empty()) throw_error<InvalidArgument>("{} must name at least one number.", flag);
    std::sort(numbers.begin(), numbers.end());
    if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end())
      throw_error<InvalidArgument>("{} names a number twice: '{}'.", flag, text);
    if (numbers.front() < lowest)
      throw_error<InvalidArgument>("{} must be at least {}, not {}.", flag, lowest, numbers.front());
    return numbers;
  }

  GeneralisationPlan plan_without_data() const {
    GeneralisationPlan plan;
    if (std::find(kSizeNames.begin(), kSizeNames.end(), size_) == kSizeNames.end())
      throw InvalidArgument("--size " + must_be_one_of(size_, kSizeNames));
    const bool small = size_ == "small";
    if (small) plan.sizes = GeneralisationSizes::small();
    const auto take = [](const char* flag, const std::optional<std::string>& text, std::int64_t lowest,
                         std::vector<std::int64_t>& sizes) {
      if (text) sizes = integers(flag, *text, lowest);
    };
    take("--lengths", lengths_, 2, plan.sizes.lengths);
    take("--queries", queries_, 2, plan.sizes.queries);
    take("--online-queries", online_, 2, plan.sizes.online);
    take("--widths", widths_, 10, plan.sizes.widths);
    if (held_out_) plan.sizes.held_out = *held_out_;
    plan.seeds = integers("--seeds", seeds_.value_or(small ? "1-3" : "1-20"), 0);
    if (!data_.empty()) plan.experiments = "ABCDEF";
    if (!experiments_.empty()) {
      plan.experiments.clear();
      for (const std::string& name : experiments_) {
        if (std::find(kExperimentNames.begin(), kExperimentNames.end(), name) == kExperimentNames.end())
          throw InvalidArgument("--experiments " + must_be_one_of(name, kExperimentNames));
        if (plan.experiments.find(name) == std::string::npos) plan.experiments += name;
      }
      std::sort(plan.experiments.begin(), plan.experiments.end());
    }
    if (plan.experiments.find('F') != std::string::npos && data_.empty())
      throw InvalidArgument("Experiment F ranks real lists: name a folder of five folds with --data.");
    return plan;
  }

  std::vector<std::string> experiments_;
  std::optional<std::string> seeds_;
  std::string size_ = "full";
  std::optional<std::string> lengths_;
  std::optional<std::string> queries_;
  std::optional<std::string> online_;
  std::optional<std::string> widths_;
  std::optional<std::int64_t> held_out_;
  std::vector<std::string> data_;
  std::string out_ = "runs/generalisation";
  int jobs_ = 1;
  ExperimentFlags request_;
};

}  // namespace

const CommandEntry kBenchCovarianceCommand{
    "bench covariance",
    "study: compare covariance structures and ensembles with full covariance in paired trials",
    make_command<BenchCovarianceCommand>};

const CommandEntry kBenchGeneralisationCommand{
    "bench generalisation",
    "study: the effect of list length, norms and noise on the generalisation of losses of lists",
    make_command<BenchGeneralisationCommand>};

}  // namespace olrank
