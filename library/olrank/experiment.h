#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// Experiments as `olrank run` plays them. Needs the C++20 standard library alone.
namespace olrank {

/// An experiment does one of these with results that are there already.
enum class EarlierResults { kRefuse, kResume, kReplace };

struct ExperimentOptions {
  std::string configuration = {};        // TOML, as in a configuration file
  std::string origin = "configuration";  // what messages call it
  std::string out = {};                  // instead of run.out
  EarlierResults earlier = EarlierResults::kRefuse;
  std::string command = "olrank::play_experiment";  // what the manifest says of the call
  std::string shard = {};  // "I/N", I from 0: trial k is played where k mod N is I; empty: all
  bool plays = true;       // false: only checks and describes the folder, so that others can play in it
  /// Gets the progress events of docs/CONTRACTS.md, each a JSON object. Called by any thread, one at a
  /// time; it must not use olrank.
  std::function<void(std::string_view)> on_event = {};
};

struct PlayedExperiment {
  std::filesystem::path out;
  std::vector<std::string> trials;    // of the whole experiment, by their folders in `out`
  std::vector<std::string> failures;  // a sentence for each trial that failed
  int signal = 0;                     // that stopped it, with checkpoints; 0 for none
};

/// Plays all trials of a configuration and writes the folder that `olrank run` would: the same bits. One at
/// a time in a process. SIGINT, SIGTERM and SIGHUP stop it between rounds.
PlayedExperiment play_experiment(const ExperimentOptions& options);

/// The state at the end of a trial of a registered ranker (external_ranker.h): what its save() wrote.
/// Throws for a trial without a checkpoint and for other kinds.
std::string external_ranker_state(const std::filesystem::path& trial);

struct TuningOptions {
  ExperimentOptions experiment = {};  // its configuration has a [sweep]; its shard and `plays` do not count
  std::string by =
      "offline";  // the figure that decides: offline, online, both or worst, as in `olrank tune`
  /// The step to take is all of it; or where others play trials, only make the folder OUT/tuning of the
  /// grid ready; or choose from the finished grid and make the folder OUT/test ready. Both have a
  /// config.toml.
  enum class Step { kWhole, kMakeGrid, kChoose } step = Step::kWhole;
};

struct PlayedTuning {
  std::filesystem::path out;
  std::string winners;   // JSON, as of `olrank tune`; empty unless all was done
  bool complete = true;  // no trial failed
  int signal = 0;        // that stopped it, with checkpoints; 0 for none
};

/// Plays a grid on the validation set and its winners on the test set, and writes the folder that `olrank
/// tune` would: the same bits.
PlayedTuning play_tuning(const TuningOptions& options);

/// The report of folders of results, finished or not, as `olrank report` writes it to a file: `form` is the
/// name of that file's flag, such as latex. Differences are taken against the ranker `baseline`, else the
/// best one offline; `users` has those of each LaTeX table, by default one for each user.
std::string experiment_report(const std::vector<std::filesystem::path>& folders, const std::string& form,
                              const std::string& baseline = {},
                              const std::vector<std::vector<std::string>>& users = {});

/// A figure of a report.
struct ExperimentFigure {
  std::string name;  // "perfect-ndcg"
  std::string caption;
  std::string svg;
};
/// The figures of a folder of results, finished or not.
std::vector<ExperimentFigure> experiment_figures(const std::filesystem::path& out, bool dark = false);

}  // namespace olrank
