#include "bench/steady_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "core/online/online_ranker.h"
#include "core/ops/relu_network.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/covariance/covariance_study.h"
#include "models/ranker_factory.h"
#include "models/ranker_memory.h"

namespace olrank {
namespace {

constexpr std::int64_t kCutoff = 10;
constexpr std::int64_t kFewestRounds = 11;
constexpr int kUnitRepeats = 5;
constexpr std::string_view kHostStage = "rank";  // the list, which the CPU makes for a GPU, too
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

RankerSettings settings_of(const RoundSizes& sizes) {
  StudySettings study;
  study.structures = {std::string(kExactStructure)};
  if (sizes.structure != kExactStructure) study.structures.push_back(sizes.structure);
  study.widths = {sizes.width};
  study.depths = {sizes.depth};
  study.noise_variances = {0.1};
  study.exact_widths = false;
  const StudyBase base = {RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kPaper),
                          RankerSettings::defaults(RankerKind::kP2NeurRank, ProtocolName::kPaper)};
  RankerSettings settings = study_rankers(study, base).back().settings;
  if (!sizes.module.empty()) {
    settings.network.network = NetworkForm::kModule;
    settings.network.module = sizes.module;
  }
  TrainerSettings& trainer = settings.trainer;
  trainer.retrain = sizes.training.retrain;
  trainer.retrain_growth = sizes.training.growth;
  trainer.replay_steps = sizes.training.replay_steps;
  trainer.replay = sizes.training.replay;
  return settings;
}

bool grows(const RoundSizes& sizes) {
  return sizes.training.retrain == Retrain::kGrowth;
}

/// Rounds that bring as many pairs as lie between two trainings on the whole history: any such number of
/// consecutive rounds includes exactly one.
std::int64_t rounds_between_trainings(const RoundSizes& sizes) {
  const std::int64_t pairs_of_round = std::max<std::int64_t>(1, std::min(kCutoff, sizes.docs) / 2);
  const double pairs = sizes.training.growth * static_cast<double>(sizes.pairs);
  return std::max<std::int64_t>(1, std::llround(std::ceil(pairs / static_cast<double>(pairs_of_round))));
}

/// The sizes with a number of rounds.
RoundSizes with_rounds(RoundSizes sizes) {
  if (sizes.rounds > 0) return sizes;
  sizes.rounds = kFewestRounds;
  if (!grows(sizes)) return sizes;
  const std::int64_t between = rounds_between_trainings(sizes);
  sizes.rounds = (kFewestRounds + between - 1) / between * between;
  return sizes;
}

/// Rounds before the measured ones: caches and buffers, and on a GPU the first trainings of a size, which
/// are not recorded as a graph.
std::int64_t warm_ups(const RoundSizes& sizes) {
  return sizes.gpu ? 8 : 1;
}

/// Random queries in one matrix. Not movable, as queries point into it. The first documents belong to the
/// pairs observed before the measured rounds, in separate queries.
class RandomQueries {
 public:
  explicit RandomQueries(const RoundSizes& sizes)
      : docs_(sizes.docs),
        features_(sizes.features),
        past_docs_(2 * sizes.pairs),
        // Several queries where a device's have a fixed maximum size, and where the first trainings have to
        // come as in a trial.
        past_query_docs_(sizes.gpu || grows(sizes) ? sizes.docs : 2 * sizes.pairs),
        values_((past_docs_ + (warm_ups(sizes) + sizes.rounds) * sizes.docs) * sizes.features) {
    RngStream draws(make_key({.seed = 1, .purpose = Purpose::kProbe}), 0);
    for (float& value : values_) value = static_cast<float>(draws.uniform());
  }
  RandomQueries(const RandomQueries&) = delete;
  RandomQueries& operator=(const RandomQueries&) = delete;

  FeatureMatrix all() const { return {values_.data(), std::ssize(values_) / features_, features_}; }
  std::int64_t past() const { return (past_docs_ + past_query_docs_ - 1) / past_query_docs_; }
  QueryDocs past_query(std::int64_t number) const {
    const std::int64_t first = number * past_query_docs_;
    return at(number, first, std::min(past_query_docs_, past_docs_ - first));
  }
  /// The query of a measured round.
  QueryDocs query(std::int64_t number) const {
    return at(past() + number, past_docs_ + number * docs_, docs_);
  }

 private:
  QueryDocs at(std::int64_t number, std::int64_t first_doc, std::int64_t docs) const {
    return {number, first_doc, {values_.data() + first_doc * features_, docs, features_}};
  }

  std::int64_t docs_;
  std::int64_t features_;
  std::int64_t past_docs_;
  std::int64_t past_query_docs_;
  std::vector<float> values_;
};

/// Learns from clicks that make one pair of every two adjacent ranks; the upper and the lower one win in
/// turn.
void learn_from_clicks(OnlineRanker& ranker, RoundContext& context, std::uint32_t round,
                       const QueryDocs& query, std::span<const std::int32_t> shown) {
  std::vector<std::uint8_t> clicks;
  for (std::size_t rank = 0; rank < shown.size(); ++rank)
    clicks.push_back(static_cast<std::uint8_t>(rank % 4 < 2 ? rank % 2 : 1 - rank % 2));
  ranker.learn(context, {round, query, shown, clicks});
}

/// Observes the past pairs, a query in each round.
void observe_past_pairs(OnlineRanker& ranker, RoundContext& context, const RandomQueries& queries) {
  for (std::int64_t number = 0; number < queries.past(); ++number) {
    const QueryDocs query = queries.past_query(number);
    std::vector<std::int32_t> shown(query.docs());
    std::iota(shown.begin(), shown.end(), 0);
    learn_from_clicks(ranker, context, static_cast<std::uint32_t>(number + 1), query, shown);
  }
}

std::unique_ptr<OnlineRanker> ranker_for(const RoundSizes& sizes, const RandomQueries& queries) {
  const RankerDevice place{
      sizes.gpu.value_or(0), queries.all(), sizes.docs, {queries.all().values, 0, sizes.features}, 0};
  return make_ranker(settings_of(sizes), sizes.features, TrialKeys::of(1, 1, "perfect"), kCutoff,
                     {.device = sizes.gpu ? &place : nullptr});
}

std::map<std::string, double> stages_of(const StageClock& clock) {
  std::map<std::string, double> seconds;
  for (const auto& stage : clock.stages()) seconds[stage.name] = stage.seconds;
  return seconds;
}

void play_round(OnlineRanker& ranker, RoundContext& context, const RandomQueries& queries,
                std::int64_t number) {
  const QueryDocs query = queries.query(number);
  const auto round = static_cast<std::uint32_t>(queries.past() + number + 1);
  const RankedList list = ranker.rank(context, query, round);
  const auto shown = static_cast<std::ptrdiff_t>(std::min(kCutoff, query.docs()));
  learn_from_clicks(ranker, context, round, query,
                    std::vector<std::int32_t>(list.docs.begin(), list.docs.begin() + shown));
}

Measurement measurement_of(const RoundSizes& sizes, const std::string& stage, std::vector<double> seconds) {
  Measurement measurement;
  std::string variant = sizes.module.empty() ? sizes.structure : sizes.structure + "-" + sizes.module;
  if (grows(sizes)) variant += fmt::format("-{}", name_of(sizes.training.retrain));
  measurement.name = fmt::format("round/{}/{}", variant, stage);
  if (sizes.gpu) measurement.device = "cuda";
  const std::int64_t parameters = ntk_shape(sizes.features, sizes.width, sizes.depth).parameters();
  measurement.parameters = {{"n", sizes.pairs},        {"V", sizes.docs},     {"m", sizes.width},
                            {"L", sizes.depth},        {"d", sizes.features}, {"p", parameters},
                            {"threads", sizes.threads}};
  measurement.seconds = spread_of(std::move(seconds));
  measurement.ceiling_value = std::nan("");
  measurement.share = std::nan("");
  return measurement;
}

}  // namespace

void check_memory(const RoundSizes& asked) {
  const RoundSizes sizes = with_rounds(asked);
  const std::int64_t rounds_before = 2 * sizes.pairs / kCutoff;
  const std::int64_t played = warm_ups(sizes) + sizes.rounds;
  const std::int64_t docs = 2 * sizes.pairs + played * sizes.docs;
  const RankerMemory plan =
      memory_of_ranker(settings_of(sizes), {sizes.features, docs, rounds_before + played, kCutoff});
  const double of_data = static_cast<double>(docs * sizes.features) * sizeof(float);
  const double needed = static_cast<double>(plan.bytes) + of_data;
  const std::int64_t available = available_memory();
  if (needed <= static_cast<double>(available)) return;
  throw_error<InvalidArgument>(
      "A round of {} with n = {}, V = {}, m = {} and d = {} needs {} of memory, but this machine has {} "
      "available{}{}.",
      sizes.structure, sizes.pairs, sizes.docs, sizes.width, sizes.features, readable_bytes(needed),
      readable_bytes(static_cast<double>(available)), plan.forms.empty() ? "" : ": ",
      plan.forms.empty() ? "" : advice_on_memory(plan, available));
}

std::vector<Measurement> measure_round(const RoundSizes& asked, ProductUnit& unit) {
  check_memory(asked);
  const RoundSizes sizes = with_rounds(asked);
  unit.measure(kUnitRepeats);
  // A trial that has already observed its past pairs.
  const RandomQueries queries(sizes);
  const std::unique_ptr<OnlineRanker> ranker = ranker_for(sizes, queries);
  ExecutionContext execution(sizes.threads);
  StageClock clock;
  RoundContext context{execution, clock};
  observe_past_pairs(*ranker, context, queries);
  for (std::int64_t i = 0; i < warm_ups(sizes); ++i) play_round(*ranker, context, queries, i);
  std::map<std::string, std::vector<double>> seconds;  // of each stage, a number per round
  const auto begin = Clock::now();
  for (std::int64_t i = 0; i < sizes.rounds; ++i) {
    const auto before = stages_of(clock);
    const auto round_begin = Clock::now();
    play_round(*ranker, context, queries, warm_ups(sizes) + i);
    const double elapsed = seconds_since(round_begin);
    double total = 0.0;
    double on_host = 0.0;
    for (const auto& [stage, spent] : stages_of(clock)) {
      const auto earlier = before.find(stage);
      const double taken = spent - (earlier == before.end() ? 0.0 : earlier->second);
      seconds[stage].push_back(taken);
      total += taken;
      if (stage == kHostStage) on_host += taken;
    }
    // Stages of modules are the host's time.
    if (sizes.gpu && sizes.module.empty())
      seconds["idle"].push_back(std::max(0.0, elapsed - (total - on_host)));
    seconds["total"].push_back(sizes.gpu ? elapsed : total);
  }
  const double elapsed = seconds_since(begin);
  unit.measure(kUnitRepeats);
  std::vector<Measurement> measurements;
  for (const char* stage : {"score", "width", "rank", "observe", "train", "idle", "total"}) {
    const auto found = seconds.find(stage);
    if (found != seconds.end()) measurements.push_back(measurement_of(sizes, stage, found->second));
  }
  measurements.push_back(measurement_of(sizes, "elapsed", {elapsed / static_cast<double>(sizes.rounds)}));
  return measurements;
}

}  // namespace olrank
