#include "report/experiment_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/text/message_text.h"
#include "report/markup.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The member whose name starts with `prefix`: "ndcg@" finds "ndcg@10".
json::const_iterator member(const json& object, std::string_view prefix) {
  for (auto entry = object.begin(); entry != object.end(); ++entry) {
    if (entry.key().rfind(prefix, 0) == 0) return entry;
  }
  throw json::out_of_range::create(403, "missing member", &object);
}

double nullable(const json& value) {
  return value.is_null() ? std::nan("") : value.get<double>();
}

/// A member of an evaluation, or of one of its objects.
struct Member {
  const char* object;  // empty: the evaluation itself
  const char* key;
  Measure measure;
};
constexpr Member kMembers[] = {{"", "certain_share", Measure::kCertainShare},
                               {"", "blocks", Measure::kBlocks},
                               {"", "cosine", Measure::kCosine},
                               {"online", "regret", Measure::kRegret},
                               {"online", "examined_regret", Measure::kExaminedRegret},
                               {"width_ratio", "median", Measure::kWidthRatio},
                               {"width_ratio", "p10", Measure::kWidthRatioLow},
                               {"width_ratio", "p90", Measure::kWidthRatioHigh},
                               {"false_certain", "share", Measure::kFalseCertain},
                               {"decisions_differ", "share", Measure::kDecisionsDiffer},
                               {"fairness", "unfairness", Measure::kUnfairness},
                               {"fairness", "fair_share", Measure::kFairShare},
                               {"fairness", "violations", Measure::kViolations},
                               {"fairness", "unrealisable", Measure::kUnrealisable}};

const json& object_named(const json& evaluation, const char* name) {
  static const json nothing = json::object();
  const auto found = evaluation.find(name);
  return found != evaluation.end() && found->is_object() ? *found : nothing;
}

/// The count behind a share: {"share": …, "of": …}; 0 without it.
double count_of(const json& evaluation, const char* name) {
  const json& share = object_named(evaluation, name);
  return share.empty() ? 0.0 : share.at("of").get<double>();
}

/// Reads the members that protocol.metrics adds to an evaluation.
void read_metrics(const json& evaluation, MeasureValues& values) {
  const auto read = [&](const json& object, Measure (*measure)(const NamedMetric&)) {
    const auto metrics = object.find("metrics");
    if (metrics == object.end()) return;
    for (const auto& [name, value] : metrics->items()) {
      const auto metric = metric_named(name);
      values[measure(metric ? *metric : own_metric(name))] = nullable(value);
    }
  };
  read(evaluation, measure_of);
  if (const auto random = evaluation.find("random"); random != evaluation.end())
    read(*random, random_measure_of);
}

struct Line {
  CurveEvaluation point;
  std::int64_t cutoff = 0;
  double seconds = 0.0;  // total of all rounds so far
};

Line parse_line(std::string_view text) {
  const json object = parse_json(text);
  Line line;
  line.point = read_evaluation(object, line.cutoff);
  line.seconds = std::nan("");
  if (const auto seconds = object.find("seconds"); seconds != object.end() && seconds->is_object()) {
    line.seconds = 0.0;
    for (const auto& [stage, value] : seconds->items()) {
      if (is_of_rounds(stage)) line.seconds += value.get<double>();
    }
  }
  return line;
}

std::optional<Line> try_line(std::string_view text) {
  try {
    return parse_line(text);
  } catch (const std::exception&) {  // from the JSON parser or std::stoll
    return std::nullopt;
  }
}

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

double number_or_nan(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::nan("") : nullable(*found);
}

CurveEvaluation read_evaluation(const json& object, std::int64_t& cutoff) {
  CurveEvaluation point;
  point.round = object.at("round").get<std::int64_t>();
  MeasureValues& values = point.values;
  const auto offline = member(object.at("offline"), "ndcg@");
  cutoff = std::stoll(offline.key().substr(5));
  values[Measure::kOfflineNdcg] = nullable(offline.value());
  const json& online = object.at("online");
  // Before the first round no list has been shown, and its mean is no result.
  if (point.round > 0) values[Measure::kOnlineNdcg] = nullable(member(online, "ndcg@").value());
  values[Measure::kDiscountedNdcg] = nullable(member(online, "cndcg@").value());
  for (const auto& [name, key, measure] : kMembers)
    values[measure] = number_or_nan(*name == '\0' ? object : object_named(object, name), key);
  const json& sizes = object_named(object, "block_size");
  for (std::size_t place = 0; place < ListCertainty::kBlockRanks.size(); ++place)
    values[block_size_at(place)] =
        number_or_nan(sizes, fmt::to_string(ListCertainty::kBlockRanks[place]).c_str());
  point.certain_orders = count_of(object, "false_certain");
  point.decisions = count_of(object, "decisions_differ");
  if (const auto stated = object.find("stated"); stated != object.end()) {
    for (const json& one : *stated) {
      const double of = one.at("of").get<double>();
      point.stated.push_back(
          {one.at("from").get<double>(), of > 0.0 ? number_or_nan(one, "wrong") * of : 0.0, of});
    }
  }
  if (const auto random = object.find("random"); random != object.end()) {
    const json& lists = random->at("online");
    values[Measure::kRandomOfflineNdcg] = nullable(member(random->at("offline"), "ndcg@").value());
    if (point.round > 0) values[Measure::kRandomOnlineNdcg] = nullable(member(lists, "ndcg@").value());
    values[Measure::kRandomDiscountedNdcg] = nullable(member(lists, "cndcg@").value());
    values[Measure::kRandomRegret] = number_or_nan(lists, "regret");
  }
  read_metrics(object, values);
  return point;
}

double whole_trial_share(const RecordedCurve& curve, Measure measure) {
  double hits = 0.0;
  double of = 0.0;
  for (const CurveEvaluation& point : curve.points) {
    const double share = point.values[measure];
    const double count = measure == Measure::kFalseCertain ? point.certain_orders : point.decisions;
    if (!std::isfinite(share)) continue;
    hits += share * count;
    of += count;
  }
  return of > 0.0 ? hits / of : std::nan("");
}

RecordedCurve read_curve(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  RecordedCurve curve;
  double seconds_before = std::nan("");
  std::int64_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    ++line_number;
    const std::size_t end = text.find('\n', begin);
    const bool complete = end != std::string::npos;
    const std::string_view content = std::string_view(text).substr(begin, complete ? end - begin : end);
    std::optional<Line> line = try_line(content);
    const bool ascends = line && (curve.points.empty() || line->point.round > curve.points.back().round);
    if (!complete || !ascends) {
      const char* problem = !complete ? "incomplete" : !line ? "not a valid evaluation" : "out of order";
      curve.damage = fmt::format("{}:{}: This line is {}; the trial's curve ends before it.", file.string(),
                                 line_number, problem);
      break;
    }
    if (!curve.points.empty()) {
      const auto rounds = static_cast<double>(line->point.round - curve.points.back().round);
      line->point.values[Measure::kMilliseconds] = 1000.0 * (line->seconds - seconds_before) / rounds;
    }
    seconds_before = line->seconds;
    curve.cutoff = line->cutoff;
    curve.points.push_back(line->point);
    begin = end + 1;
  }
  return curve;
}

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
    const auto end = utc_milliseconds(trial.ended_at);
    if (!end) continue;
    ++known;
    first = std::min(first, *end / 1000 - static_cast<std::int64_t>(std::llround(trial.seconds)));
    last = std::max(last, *end / 1000);
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
    for (const std::string& note : results.trials.back().notes)
      results.warnings.push_back(fmt::format("{}: {}", identity.path().string(), note));
  }
  find_missing(results);
  results.study = read_study_plan(folder);
  return results;
}

}  // namespace olrank
