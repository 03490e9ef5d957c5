#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/runtime/log.h"
#include "core/settings/toml_document.h"
#include "core/throw_error.h"
#include "jobs/covariance/covariance_study.h"
#include "jobs/covariance/study_rankers.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

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
    if (print_) {
      fmt::print("{}", print_configuration(configuration));
      return 0;
    }
    const ExperimentRequest request = experiment_.request();
    if (dry_run_) {
      write_output(covariance_study_dry_run(configuration, request, output.form()));
      return 0;
    }
    return run_covariance_study(configuration, request, output.command_line, output.form(),
                                [](std::string_view text) {
                                  write_output(text);
                                  flush_output();
                                });
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

}  // namespace

const CommandEntry kBenchCovarianceCommand{
    "bench covariance",
    "study: compare covariance structures and ensembles with full covariance in paired trials",
    make_command<BenchCovarianceCommand>};

}  // namespace olrank
