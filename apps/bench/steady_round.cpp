#include "apps/bench/steady_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "apps/bench/study_rankers.h"
#include "core/online/trial_keys.h"
#include "core/random/rng_stream.h"
#include "models/ranker_factory.h"

namespace olrank {
namespace {

constexpr std::int64_t kCutoff = 10;

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
  return study_rankers(study, base).back().settings;
}

/// Documents of one query.
struct MadeQuery {
  MadeQuery(std::int64_t number, std::int64_t docs, std::int64_t features)
      : values(static_cast<std::size_t>(docs * features)) {
    RngStream draws(make_key({.seed = 1, .purpose = Purpose::kProbe}), static_cast<std::uint32_t>(number));
    for (float& value : values) value = static_cast<float>(draws.uniform());
    query = {
        number, number == 0 ? 0 : (std::int64_t{1} << 30) + number * docs, {values.data(), docs, features}};
  }
  std::vector<float> values;
  QueryDocs query;
};

/// A pair in every two ranks: each second of them, now the upper, now the lower one, is clicked.
void teach(OnlineRanker& ranker, RoundContext& context, std::uint32_t round, const QueryDocs& query,
           std::span<const std::int32_t> shown) {
  std::vector<std::uint8_t> clicks;
  for (std::size_t rank = 0; rank < shown.size(); ++rank)
    clicks.push_back(static_cast<std::uint8_t>(rank % 4 < 2 ? rank % 2 : 1 - rank % 2));
  ranker.learn(context, {round, query, shown, clicks});
}

void observe_before(OnlineRanker& ranker, RoundContext& context, const RoundSizes& sizes) {
  const MadeQuery past(0, 2 * sizes.pairs, sizes.features);
  std::vector<std::int32_t> shown(static_cast<std::size_t>(2 * sizes.pairs));
  std::iota(shown.begin(), shown.end(), 0);
  teach(ranker, context, 1, past.query, shown);
}

std::map<std::string, double> stages_of(const StageClock& clock) {
  std::map<std::string, double> seconds;
  for (const auto& stage : clock.stages()) seconds[stage.name] = stage.seconds;
  return seconds;
}

Measurement measurement_of(const RoundSizes& sizes, const std::string& stage, std::vector<double> seconds) {
  Measurement measurement;
  measurement.name = fmt::format("round/{}/{}", sizes.structure, stage);
  measurement.parameters = {{"n", sizes.pairs}, {"V", sizes.docs},     {"m", sizes.width},
                            {"L", sizes.depth}, {"d", sizes.features}, {"threads", sizes.threads}};
  measurement.seconds = spread_of(std::move(seconds));
  measurement.ceiling_value = std::nan("");
  measurement.share = std::nan("");
  return measurement;
}

}  // namespace

std::vector<Measurement> measure_round(const RoundSizes& sizes) {
  const auto ranker =
      make_ranker(settings_of(sizes), sizes.features, TrialKeys::of(1, 1, "perfect"), kCutoff);
  ExecutionContext execution({}, sizes.threads);
  StageClock clock;
  RoundContext context{execution, clock};
  observe_before(*ranker, context, sizes);
  std::map<std::string, std::vector<double>> seconds;
  std::vector<double> totals;
  for (std::int64_t i = 0; i < sizes.rounds + 1; ++i) {
    const MadeQuery asked(i + 1, sizes.docs, sizes.features);
    const auto round = static_cast<std::uint32_t>(i + 2);
    const auto before = stages_of(clock);
    const RankedList list = ranker->rank(context, asked.query, round);
    const auto shown = static_cast<std::size_t>(std::min(kCutoff, sizes.docs));
    const std::vector<std::int32_t> top(list.docs.begin(),
                                        list.docs.begin() + static_cast<std::ptrdiff_t>(shown));
    teach(*ranker, context, round, asked.query, top);
    if (i == 0) continue;  // the first fills caches and buffers
    double total = 0.0;
    for (const auto& [stage, spent] : stages_of(clock)) {
      const auto earlier = before.find(stage);
      const double taken = spent - (earlier == before.end() ? 0.0 : earlier->second);
      seconds[stage].push_back(taken);
      total += taken;
    }
    totals.push_back(total);
  }
  std::vector<Measurement> measurements;
  for (const char* stage : {"score", "width", "rank", "observe", "train"}) {
    if (const auto found = seconds.find(stage); found != seconds.end())
      measurements.push_back(measurement_of(sizes, stage, found->second));
  }
  measurements.push_back(measurement_of(sizes, "total", std::move(totals)));
  return measurements;
}

}  // namespace olrank
