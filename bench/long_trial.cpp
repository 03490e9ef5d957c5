#include "bench/long_trial.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bench/measurement.h"
#include "core/io/json.h"
#include "core/runtime/device.h"
#include "core/text/text_table.h"
#include "report/markup.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCurveFile = "curve.jsonl";

double figure_named(const CurvePoint& point, std::string_view name) {
  const auto found = std::find_if(point.figures.begin(), point.figures.end(),
                                  [&](const RankerFigure& figure) { return figure.name == name; });
  return found == point.figures.end() ? std::nan("") : found->value;
}

/// Sums the sizes of the files below the folder, but the curve.
std::int64_t checkpoint_bytes_in(const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != kCurveFile)
      bytes += static_cast<std::int64_t>(entry.file_size());
  }
  return bytes;
}

Fingerprint state_of(const Trial& trial) {
  StateWriter state;
  trial.save(state);
  return state.fingerprint();
}

}  // namespace

LongTrial::LongTrial(const ExperimentPlan& plan, const ExperimentRanker& ranker)
    : plan_(plan),
      ranker_plan_(ranker),
      identity_{ranker.name, plan.users.front().name, plan.folds.front(), plan.seeds.front()},
      recipe_{{"protocol", plan.protocol}, {"ranker", ranker.settings}},
      fold_(plan.data->get(identity_.fold)),
      execution_(plan.threads),
      folder_(std::make_unique<JobFolder>(scratch_.path() / identity_.path())),
      job_(plan, ranker, plan.users.front(), identity_, *fold_, 0, execution_) {
  folder_->begin();
  job_.trial.begin_evaluation();
  job_.finish_evaluation(*folder_);
  stages_ = job_.trial.clock().stages();
  folder_->write_checkpoint(job_, recipe_);
  folder_->finish_checkpoint();
}

void LongTrial::play(std::int64_t rounds) {
  const double start = processor_seconds();
  for (std::int64_t round = 0; round < rounds; ++round) job_.trial.play_round();
  seconds_ += processor_seconds() - start;
}

LongSpan LongTrial::measured(const ProductUnit& unit) {
  Trial& trial = job_.trial;
  LongSpan span;
  span.round = trial.rounds_played();
  span.rounds = span.round - last_round_;
  const auto rounds = static_cast<double>(span.rounds);
  all_seconds_ += seconds_;
  span.seconds = seconds_ / rounds;
  span.mean_seconds = all_seconds_ / static_cast<double>(span.round);
  span.unit_seconds = unit.processor_seconds();
  for (const StageClock::Stage& stage : trial.clock().stages()) {
    const auto before = std::find_if(stages_.begin(), stages_.end(), [&](const StageClock::Stage& other) {
      return other.name == stage.name;
    });
    const double earlier = before == stages_.end() ? 0.0 : before->seconds;
    if (stage.seconds > earlier) span.stages.emplace_back(stage.name, (stage.seconds - earlier) / rounds);
  }
  trial.begin_evaluation();
  const CurvePoint& point = job_.finish_evaluation(*folder_);
  span.pairs = point.pairs;
  span.offline_ndcg = point.offline_ndcg;
  span.posterior_bytes = figure_named(point, "posterior_bytes");
  span.drift = point.drift.value_or(std::nan(""));
  last_round_ = span.round;
  seconds_ = 0.0;
  stages_ = trial.clock().stages();
  return span;
}

LongSpan LongTrial::end_span(const ProductUnit& unit) {
  LongSpan span = measured(unit);
  folder_->write_checkpoint(job_, recipe_);
  folder_->finish_checkpoint();
  span.checkpoint_bytes = checkpoint_bytes_in(folder_->path());
  span.resident_bytes = resident_bytes();
  return span;
}

LongSpan LongTrial::end(const ProductUnit& unit, bool& same_bits) {
  LongSpan span = measured(unit);
  span.resident_bytes = resident_bytes();
  same_bits = resumed_alike();
  folder_->write_checkpoint(job_, recipe_);
  folder_->finish_checkpoint();
  span.checkpoint_bytes = checkpoint_bytes_in(folder_->path());
  return span;
}

bool LongTrial::resumed_alike() const {
  TrialJob again(plan_, ranker_plan_, plan_.users.front(), identity_, *fold_, 0, execution_);
  folder_->load(again, recipe_);
  while (!again.trial.finished()) again.trial.play_round();
  if (again.trial.evaluation_due()) again.trial.evaluate();
  return state_of(again.trial) == state_of(job_.trial);
}

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kAfterTheBeginning = 2;  // the third span

ordered_json span_json(const LongSpan& span) {
  ordered_json json = {{"round", span.round},
                       {"rounds", span.rounds},
                       {"pairs", span.pairs},
                       {"seconds", span.seconds},
                       {"units", number_or_null(span.seconds / span.unit_seconds)},
                       {"mean_seconds", span.mean_seconds},
                       {"unit_seconds", number_or_null(span.unit_seconds)},
                       {"seconds_by_stage", ordered_json::object()},
                       {"offline_ndcg", span.offline_ndcg},
                       {"drift", number_or_null(span.drift)},
                       {"posterior_bytes", number_or_null(span.posterior_bytes)},
                       {"checkpoint_bytes", span.checkpoint_bytes},
                       {"resident_bytes", span.resident_bytes}};
  for (const auto& [stage, seconds] : span.stages) json["seconds_by_stage"][stage] = seconds;
  return json;
}

std::string count_text(std::int64_t count) {
  return fixed_number(static_cast<double>(count), 0);
}

std::string milliseconds_text(double seconds) {
  return fmt::format("{:.3f}", 1e3 * seconds);
}

std::string megabytes_text(double bytes) {
  return std::isfinite(bytes) ? fmt::format("{:.1f}", 1e-6 * bytes) : "–";
}

double seconds_of(const LongSpan& span, std::string_view name) {
  const auto found = std::find_if(span.stages.begin(), span.stages.end(),
                                  [&](const auto& stage) { return stage.first == name; });
  return found == span.stages.end() ? 0.0 : found->second;
}

std::string span_name(const LongSpan& span) {
  return fmt::format("{}–{}", count_text(span.round - span.rounds + 1), count_text(span.round));
}

std::string ranker_sentence(const LongRanker& ranker) {
  const LongSpan& last = ranker.spans.back();
  std::string text = fmt::format("{}: a round of {} takes {} ms, {:.2f} GEMM", ranker.name, span_name(last),
                                 milliseconds_text(last.seconds), last.seconds / last.unit_seconds);
  if (const double growth = growth_of(ranker); std::isfinite(growth)) {
    text += fmt::format(", {:.2f} times one of {}", growth, span_name(ranker.spans[kAfterTheBeginning]));
  }
  return text + fmt::format(". Resumed from the checkpoint before these rounds, the trial ends in {}.\n",
                            ranker.same_bits ? "the same bits" : "OTHER BITS");
}

}  // namespace

double growth_of(const LongRanker& ranker) {
  if (ranker.spans.size() <= kAfterTheBeginning + 1) return std::nan("");
  return ranker.spans.back().seconds / ranker.spans[kAfterTheBeginning].seconds;
}

std::string long_json(const LongReport& report) {
  ordered_json json = {{"command", report.command},
                       {"machine", machine_json(report.machine)},
                       {"data", report.data},
                       {"clicks", report.user},
                       {"fold", report.fold},
                       {"seed", report.seed},
                       {"unit", {{"name", ProductUnit::kName}, {"side", ProductUnit::kSide}}},
                       {"rankers", ordered_json::array()}};
  for (const LongRanker& ranker : report.rankers) {
    ordered_json one = {{"name", ranker.name},
                        {"growth", number_or_null(growth_of(ranker))},
                        {"resumes_to_same_bits", ranker.same_bits},
                        {"spans", ordered_json::array()}};
    for (const LongSpan& span : ranker.spans) one["spans"].push_back(span_json(span));
    json["rankers"].push_back(std::move(one));
  }
  return dump_json(json, 2) + "\n";
}

std::string long_text(const LongReport& report, std::int64_t columns) {
  TextTable table({{.header = "rounds"},
                   {.header = "ranker", .is_name = true},
                   {.header = "pairs", .dropped = 5},
                   {.header = "ms a round"},
                   {.header = "GEMM"},
                   {.header = "score", .dropped = 1},
                   {.header = "width", .dropped = 7},
                   {.header = "observe", .dropped = 2},
                   {.header = "train", .dropped = 6},
                   {.header = "mean so far"},
                   {.header = "over " + report.rankers.front().name, .dropped = 9},
                   {.header = "NDCG", .dropped = 4},
                   {.header = "drift", .dropped = 3},
                   {.header = "posterior MB", .dropped = 8},
                   {.header = "checkpoint MB", .dropped = 10},
                   {.header = "process MB", .dropped = 11}});
  for (std::size_t number = 0; number < report.rankers.front().spans.size(); ++number) {
    for (const LongRanker& ranker : report.rankers) {
      const LongSpan& span = ranker.spans[number];
      const auto stage = [&](std::string_view name) { return milliseconds_text(seconds_of(span, name)); };
      table.add(
          {span_name(span), ranker.name, count_text(span.pairs), milliseconds_text(span.seconds),
           fmt::format("{:.3f}", span.seconds / span.unit_seconds), stage("score"), stage("width"),
           stage("observe"), stage("train"), milliseconds_text(span.mean_seconds),
           fmt::format("{:.2f}", span.mean_seconds / report.rankers.front().spans[number].mean_seconds),
           fmt::format("{:.4f}", span.offline_ndcg),
           std::isfinite(span.drift) ? fmt::format("{:.1e}", span.drift) : "–",
           megabytes_text(span.posterior_bytes), megabytes_text(static_cast<double>(span.checkpoint_bytes)),
           megabytes_text(static_cast<double>(span.resident_bytes))});
    }
  }
  const TextTable::Fitted fitted = table.fitted(columns);
  std::string text = fitted.text + hidden_columns_text(fitted.hidden, columns) + "\n";
  for (const LongRanker& ranker : report.rankers) text += ranker_sentence(ranker);
  return text +
         fmt::format(
             "ms a round, mean so far: processor time; stages: on the clock. GEMM: multiples of a {0} "
             "× {0} × {0} float product on one thread, measured between the rounds. The process holds "
             "all rankers and the data.\n",
             ProductUnit::kSide);
}

}  // namespace olrank
