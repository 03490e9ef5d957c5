#include "jobs/trial_job.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "core/io/json.h"
#include "core/runtime/progress.h"
#include "core/version.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// Uses the fold's groups; returns nothing without any.
std::optional<TrialFairness> make_fairness(const ExperimentPlan& plan, const ExperimentUser& user,
                                           const TrialIdentity& identity, const FoldData& fold) {
  if (!plan.groups || fold.recorded) return std::nullopt;
  const auto clicks = user.make(fold.data.max_grade);
  return make_trial_fairness(*plan.groups, fold.data.beta, *clicks, fold.data.train, plan.trial.cutoff,
                             identity.fold, identity.user)
      .fairness;
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

ModelMetadata provenance(const TrialIdentity& identity, const Recipe& recipe, std::int64_t rounds) {
  return {{"ranker", identity.ranker},
          {"ranker_settings", text_of(recipe, "ranker")},
          {"protocol", text_of(recipe, "protocol")},
          {"data_fingerprint", text_of(recipe, "data")},
          {"clicks", identity.user},
          {"fold", std::to_string(identity.fold)},
          {"seed", std::to_string(identity.seed)},
          {"rounds", std::to_string(rounds)},
          {"commit", std::string(revision())}};
}

void save_clock(const StageClock& clock, StateWriter& state) {
  std::string names;
  std::vector<double> seconds;
  for (const StageClock::Stage& stage : clock.stages()) {
    names += stage.name + "\n";
    seconds.push_back(stage.seconds);
  }
  state.put_text("clock.stages", names);
  state.put("clock.seconds", seconds);
}

void load_clock(StageClock& clock, StateReader& state) {
  const std::string names = state.get_text("clock.stages");
  std::size_t begin = 0;
  for (const double of_stage : state.get<double>("clock.seconds")) {
    const std::size_t end = names.find('\n', begin);
    if (end == std::string::npos) state.fail("The saved stage times have no names.");
    clock.add(std::string_view(names).substr(begin, end - begin), of_stage);
    begin = end + 1;
  }
}

}  // namespace

TrialJob::TrialJob(const ExperimentPlan& plan, const ExperimentRanker& of_ranker,
                   const ExperimentUser& of_user, const TrialIdentity& identity, const FoldData& fold,
                   std::int64_t slot, ExecutionContext& execution)
    : ranker_plan(of_ranker),
      user_plan(of_user),
      keys(TrialKeys::of(static_cast<std::uint64_t>(identity.seed),
                         static_cast<std::uint64_t>(identity.fold), identity.user)),
      labels(fold.data.train),
      ranker(ranker_plan.make(ranker_data(fold.data, ranker_plan.needs_labels ? &labels : nullptr, slot),
                              keys)),
      fairness(make_fairness(plan, of_user, identity, fold)),
      queries(keys.key(Purpose::kQuery), fold.data.train.queries()),
      clicks(fold.recorded ? nullptr : user_plan.make(fold.data.max_grade)),
      trial(settings(plan, fold), fold.data,
            fold.recorded ? TrialUsers{.recorded = &*fold.recorded}
                          : TrialUsers{.queries = &queries,
                                       .clicks = clicks.get(),
                                       .fairness = fairness ? &*fairness : nullptr},
            keys, *ranker, execution),
      identity_(identity),
      fold_(fold) {}

TrialSettings TrialJob::settings(const ExperimentPlan& plan, const FoldData& fold) {
  TrialSettings settings = plan.trial;
  if (fold.recorded) settings.rounds = std::min(settings.rounds, fold.recorded->rounds());
  return settings;
}

void TrialJob::save(StateWriter& state) const {
  save_fields(curve_, state);
  save_fields(before_last_, state);
  save_clock(trial.clock(), state);
  trial.save_beside(state);
  trial.save(state);
}

void TrialJob::load(StateReader& state) {
  load_fields(curve_, state);
  load_fields(before_last_, state);
  load_clock(trial.clock(), state);
  trial.load_beside(state);
  trial.load(state);
  // A longer trial has no evaluation where the shorter one ended between two multiples of E.
  if (static_cast<double>(trial.evaluated_round()) < curve_.last_round) curve_ = before_last_;
}

const CurvePoint& TrialJob::finish_evaluation(JobFolder& folder) {
  const CurvePoint& point = trial.finish_evaluation();
  const std::string line = curve_line(point, &trial.evaluation_clock());
  folder.append(line);
  before_last_ = curve_;
  curve_.add(point, line.size());
  return point;
}

void TrialJob::finish(JobFolder& folder, const Recipe& recipe, const std::vector<std::string>& notes) {
  const double seconds = folder.seconds();  // before the state is saved and digested, which plays no round
  ModelMetadata about = fold_.inputs;
  const ModelMetadata origin = provenance(identity_, recipe, trial.rounds_played());
  about.insert(about.end(), origin.begin(), origin.end());
  const std::array<ResultFile, 2> files = {{{JobFolder::kModelFile, model_bytes(ranker->model(), about)},
                                            {JobFolder::kQueriesFile, trial.queries_csv()}}};
  StateWriter state = StateWriter::digester();
  trial.save(state);
  const Fingerprint of_state = state.fingerprint();
  const Fingerprint of_result =
      chained(curve_.digest, std::string_view(reinterpret_cast<const char*>(&of_state), sizeof of_state));

  const CurvePoint& last = trial.latest_point();
  ordered_json json = {
      {"ranker", identity_.ranker}, {"clicks", identity_.user},
      {"fold", identity_.fold},     {"seed", identity_.seed},
      {"rounds", last.round},       {"last", parse_ordered_json(curve_line(last, &trial.clock()))}};
  json["last"].erase("seconds");
  if (json["last"].contains("fairness")) json["fairness"] = json["last"]["fairness"];
  // Means of the figures over the curves: their areas by rounds, over T.
  json["area"] = {{"offline", curve_.mean_offline()}, {"online", curve_.mean_online()}};
  json["parameters"] = ranker->parameters();
  json["seconds"] = seconds;
  json["rounds_per_second"] = seconds > 0.0 ? curve_.last_round / seconds : 0.0;
  for (const auto& stage : trial.clock().stages()) json["seconds_by_stage"][stage.name] = stage.seconds;
  json["peak_memory_bytes"] = peak_memory_bytes();
  json["result_fingerprint"] =
      of_result.hex();  // of curve, figures and the ranker's state; seconds left out
  json["notes"] = notes;
  folder.finish(*this, recipe, files, std::move(json));
}

std::int64_t load_ranker(const std::filesystem::path& folder, OnlineRanker& ranker) {
  StateReader state =
      read_checkpoint(folder, fmt::format("remove {} and play the trial again", folder.string()));
  const std::int64_t rounds = Trial::load_ranker(state, ranker);
  state.require_end();
  return rounds;
}

using nlohmann::ordered_json;

std::optional<ordered_json> PassJob::first_point() {
  return std::nullopt;
}

void PassJob::fields(StateFields& state) {
  state.text("pass.untimed_curve", untimed_curve_);
  state.numbers("pass.curve_bytes", curve_bytes_);
  training_fields(state);
}

void PassJob::append(ordered_json point, JobFolder& folder) {
  point.erase("seconds");
  untimed_curve_ += dump_json(point) + "\n";
  point["seconds"] = folder.seconds();
  const std::string line = dump_json(point) + "\n";
  folder.append(line);
  curve_bytes_ += line.size();
}

bool play_passes(PassJob& job, JobFolder& folder, const Recipe& recipe, bool resume,
                 const std::function<void(const ordered_json& point, double seconds, bool last)>& told) {
  constexpr double kSecondsBetweenCheckpoints = 1.0;
  if (resume && folder.has_checkpoint()) {
    folder.restore(job, recipe);
  } else {
    folder.begin();
    if (auto point = job.first_point()) job.append(std::move(*point), folder);
  }
  folder.write_checkpoint(job, recipe);
  folder.finish_checkpoint();  // so that a killed training has one
  Stopwatch since_checkpoint;
  while (!job.finished()) {
    const ordered_json point = job.advance();
    job.append(point, folder);
    const bool last = job.finished();
    told(point, folder.seconds(), last);
    const bool stop = InterruptGuard::requested() != 0 && !last;
    if (stop || since_checkpoint.seconds() >= kSecondsBetweenCheckpoints) {
      folder.write_checkpoint(job, recipe);
      since_checkpoint = {};
    }
    if (!stop) continue;
    folder.finish_checkpoint();
    return false;
  }
  return true;
}

}  // namespace olrank
