#include "report/experiment_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <map>
#include <set>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/runtime/device.h"
#include "core/runtime/progress.h"
#include "core/text/message_text.h"
#include "report/markup.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void read_summary(const fs::path& file, TrialResults& trial) {
  const json summary = parse_checked_json(read_file(file, kLargestJson), file.string(), "use --resume");
  trial.last = read_evaluation(summary.at("last"), trial.cutoff).values;
  trial.posterior_bytes = number_or_nan(summary.at("last"), "posterior_bytes");
  if (const auto areas = summary.find("area"); areas != summary.end()) {
    trial.offline_area = number_or_nan(*areas, "offline");
    trial.online_area = number_or_nan(*areas, "online");
  }
  trial.rounds = summary.at("rounds").get<std::int64_t>();
  trial.pairs = summary.at("last").value("pairs", std::int64_t{0});
  trial.parameters = summary.at("parameters").get<std::int64_t>();
  trial.seconds = summary.at("seconds").get<double>();
  trial.ended_at = summary.value("finished", "");
  trial.rounds_per_second = number_or_nan(summary, "rounds_per_second");
  trial.peak_memory_bytes = summary.value("peak_memory_bytes", std::int64_t{0});
  trial.fingerprint = summary.value("result_fingerprint", "");
  trial.notes = summary.value("notes", std::vector<std::string>());
  double learning = 0.0;
  for (const auto& [stage, seconds] : summary.at("seconds_by_stage").items()) {
    trial.stages.emplace_back(stage, seconds.get<double>());
    if (is_of_rounds(stage)) learning += seconds.get<double>();
  }
  if (trial.rounds > 0)
    trial.last[Measure::kMilliseconds] = 1000.0 * learning / static_cast<double>(trial.rounds);
}

/// The last field of every line but the header, `qid,ndcg@K`. Fields of queries that the conventions
/// exclude are empty and become NaN. Throws DataError for anything else.
std::vector<double> read_queries(const fs::path& file) {
  const std::string text = read_file(file);
  const auto fail = [&](std::int64_t line, const char* sentence) {
    throw DataError(file.string(), line, 1, sentence);
  };
  if (!text.starts_with("qid,ndcg@")) fail(1, "This line must be 'qid,ndcg@K'.");
  std::vector<double> values;
  std::int64_t line = 1;
  for (std::size_t begin = text.find('\n'); begin != std::string::npos && begin + 1 < text.size();) {
    ++line;
    const std::size_t end = std::min(text.find('\n', begin + 1), text.size());
    const std::size_t comma = text.rfind(',', end);
    double value = std::nan("");
    if (comma == std::string::npos || comma <= begin) fail(line, "This line has no query value.");
    if (comma + 1 < end) {
      const auto [stopped, error] = std::from_chars(text.data() + comma + 1, text.data() + end, value);
      if (error != std::errc() || stopped != text.data() + end)
        fail(line, "The query value is not a number.");
    }
    values.push_back(value);
    begin = end;
  }
  return values;
}

/// A trial from its summary alone. A damaged summary becomes a warning; its trial then counts as
/// unfinished.
TrialResults read_end(const fs::path& experiment, const TrialIdentity& identity,
                      std::vector<std::string>& warnings) {
  TrialResults trial;
  trial.identity = identity;
  const fs::path summary = experiment / identity.path() / "summary.json";
  if (fs::exists(summary)) {
    try {
      read_summary(summary, trial);
      trial.finished = true;
    } catch (const std::exception&) {  // from the JSON parser or std::stoll
      trial = TrialResults();
      trial.identity = identity;
      warnings.push_back(
          fmt::format("{}: This file is not a trial summary; its trial is left out. Remove the file and "
                      "run with --resume to write it again.",
                      summary.string()));
    }
  }
  return trial;
}

TrialResults read_trial(const fs::path& experiment, const TrialIdentity& identity,
                        std::vector<std::string>& warnings) {
  TrialResults trial = read_end(experiment, identity, warnings);
  const fs::path folder = experiment / identity.path();
  if (trial.finished) {
    try {
      if (fs::exists(folder / "queries.csv")) trial.queries = read_queries(folder / "queries.csv");
    } catch (const DataError& error) {  // only the bootstrap needs them
      trial.damaged_queries = error.what();
    }
  }
  if (fs::exists(folder / "curve.jsonl")) trial.curve = read_curve(folder / "curve.jsonl");
  return trial;
}

/// All trials of the matrix. Empty if the matrix is not a full product, as after a tuning run whose choices
/// differ between folds.
std::set<TrialIdentity> matrix_of(const RunDescription& run) {
  std::set<TrialIdentity> matrix;
  for (const RankerDescription& ranker : run.rankers) {
    for (const std::string& user : run.users) {
      for (const std::int64_t fold : run.folds) {
        for (const std::int64_t seed : run.seeds) matrix.insert({ranker.name, user, fold, seed});
      }
    }
  }
  if (std::ssize(matrix) != run.trials) matrix.clear();
  return matrix;
}

void find_missing(ExperimentResults& results) {
  std::set<TrialIdentity> absent = matrix_of(results.run);
  for (const TrialResults& trial : results.trials) {
    absent.erase(trial.identity);
    if (trial.finished) {
      ++results.finished;
    } else {
      results.missing.push_back({trial.identity, trial.last_round()});
    }
  }
  for (const TrialIdentity& identity : absent) results.missing.push_back({identity, -1});
  std::sort(results.missing.begin(), results.missing.end(),
            [](const MissingTrial& a, const MissingTrial& b) { return a.identity < b.identity; });
  const auto known = results.finished + std::ssize(results.missing);
  results.expected = std::max(results.run.trials, known);
}

}  // namespace

std::int64_t TrialResults::last_round() const {
  if (finished) return rounds;
  return curve.points.empty() ? 0 : curve.points.back().round;
}

std::string ExperimentResults::duration() const {
  double sum = 0.0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  std::int64_t known = 0;
  for (const TrialResults& trial : trials) {
    if (!trial.finished) continue;
    sum += trial.seconds;
    const auto end = utc_seconds(trial.ended_at);
    if (!end) continue;
    ++known;
    first = std::min(first, *end - static_cast<std::int64_t>(std::llround(trial.seconds)));
    last = std::max(last, *end);
  }
  if (finished == 0) return "";
  std::string text = fmt::format("{} in {}", readable_duration(sum), counted(finished, "trial"));
  if (known == finished)
    text += fmt::format(", {} from the first round to the last",
                        readable_duration(static_cast<double>(last - first)));
  return text;
}

std::vector<std::string> missing_lines(const ExperimentResults& experiment) {
  std::map<std::string, std::vector<std::int64_t>> waiting;
  std::vector<std::string> lines;
  for (const MissingTrial& trial : experiment.missing) {
    const TrialIdentity& identity = trial.identity;
    const std::string place = fmt::format("{}, {}, fold {}", identity.ranker, identity.user, identity.fold);
    if (trial.round < 0) {
      waiting[place].push_back(identity.seed);
    } else {
      lines.push_back(fmt::format("{}: seed {} has reached round {}", place, identity.seed, trial.round));
    }
  }
  for (const auto& [place, seeds] : waiting)
    lines.push_back(fmt::format("{}: {} {} not started", place, seeds.size() == 1 ? "seed" : "seeds",
                                runs_text(seeds, " to ")));
  if (lines.empty() && experiment.finished < experiment.expected)
    lines.push_back("The manifest does not list them.");
  return lines;
}

TrialList finished_trials(const std::vector<TrialResults>& trials) {
  TrialList finished;
  for (const TrialResults& trial : trials) {
    if (trial.finished) finished.push_back(&trial);
  }
  return finished;
}

std::vector<TrialResults> read_finished_trials(const fs::path& folder, std::vector<std::string>* damage) {
  std::vector<TrialResults> trials;
  for (const TrialIdentity& identity : trials_in(folder)) {
    std::vector<std::string> warnings;
    TrialResults trial = read_end(folder, identity, warnings);
    if (!warnings.empty() && damage == nullptr) throw IoError(warnings.front());
    if (!warnings.empty()) damage->push_back(std::move(warnings.front()));
    if (trial.finished) trials.push_back(std::move(trial));
  }
  return trials;
}

ExperimentResults read_experiment(const fs::path& folder) {
  ExperimentResults results;
  results.folder = folder;
  results.run = read_run_description(folder);
  for (const TrialIdentity& identity : trials_in(folder)) {
    results.trials.push_back(read_trial(folder, identity, results.warnings));
    const std::string& damage = results.trials.back().curve.damage;
    if (!damage.empty()) results.warnings.push_back(damage);
    if (const std::string& damaged = results.trials.back().damaged_queries; !damaged.empty())
      results.warnings.push_back(damaged + " The bootstrap does without the trial's queries.");
    for (const std::string& note : results.trials.back().notes)
      results.warnings.push_back(fmt::format("{}: {}", identity.path().string(), note));
  }
  find_missing(results);
  results.study = read_study_plan(folder);
  return results;
}

}  // namespace olrank
