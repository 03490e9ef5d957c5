// Rounds of the online rankers without a posterior, in Google Benchmark: rank() and learn() with ten
// documents shown, of which the user clicks about a third; one thread, synthetic features.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "models/dueling_bandit.h"
#include "models/linear/linear_model.h"
#include "models/pdgd.h"
#include "models/ranknet.h"

namespace olrank {
namespace {

constexpr std::size_t kShown = 10;
constexpr std::int64_t kQueries = 64;

/// Queries of equal size with uniform features, and random clicks.
class Rounds {
 public:
  Rounds(std::int64_t docs, std::int64_t features) : docs_(docs), features_(features) {
    RngStream draws(make_key({.seed = 1, .purpose = Purpose::kSynthetic}), 0);
    values_.resize(kQueries * docs * features);
    for (float& value : values_) value = static_cast<float>(draws.uniform());
  }

  /// Plays one round, from the query to the trained model.
  void play(OnlineRanker& ranker, RoundContext& context, std::uint32_t round) {
    const std::int64_t number = round % kQueries;
    const QueryDocs query{number, number * docs_, {&values_[offset(number)], docs_, features_}};
    const RankedList list = ranker.rank(context, query, round);
    const auto shown = list.docs.first(kShown);
    RngStream coins(click_key_, round);
    for (std::uint8_t& click : clicks_) click = coins.index(3) == 0 ? 1 : 0;
    benchmark::DoNotOptimize(ranker.learn(context, {round, query, shown, clicks_}));
  }

 private:
  std::size_t offset(std::int64_t query) const {
    return static_cast<std::size_t>(query * docs_ * features_);
  }

  std::int64_t docs_;
  std::int64_t features_;
  std::vector<float> values_;
  std::vector<std::uint8_t> clicks_ = std::vector<std::uint8_t>(kShown);
  PhiloxKey click_key_ = make_key({.seed = 1, .purpose = Purpose::kClick});
};

template <class Ranker>
void play_rounds(benchmark::State& state, const RankerSettings& settings) {
  const std::int64_t features = state.range(1);
  Rounds rounds(state.range(0), features);
  Ranker ranker(std::make_unique<LinearModel>(features), settings, TrialKeys::of(1, 1, "bench"));
  ExecutionContext execution;
  StageClock clock;
  RoundContext context{execution, clock};
  std::uint32_t round = 0;
  for (auto _ : state) rounds.play(ranker, context, ++round);
  for (const StageClock::Stage& stage : clock.stages()) {
    state.counters[stage.name + "_us"] = 1e6 * stage.seconds / static_cast<double>(round);
  }
}

RankerSettings of(RankerKind kind, Interleaving interleaving = Interleaving::kTeamDraft) {
  RankerSettings chosen;
  chosen.kind = kind;
  chosen.bandit.interleaving = interleaving;
  RankerSettings settings = RankerSettings::defaults(chosen, ProtocolName::kReference);
  settings.bandit.interleaving = interleaving;
  return settings;
}

void pdgd(benchmark::State& state) {
  play_rounds<PdgdRanker>(state, of(RankerKind::kPdgd));
}

void ranknet(benchmark::State& state) {
  play_rounds<RankNetRanker>(state, of(RankerKind::kRankNet));
}

void dbgd_team_draft(benchmark::State& state) {
  play_rounds<DuelingBanditRanker>(state, of(RankerKind::kDbgd));
}

void dbgd_probabilistic(benchmark::State& state) {
  play_rounds<DuelingBanditRanker>(state, of(RankerKind::kDbgd, Interleaving::kProbabilistic));
}

void mgd_team_draft(benchmark::State& state) {
  play_rounds<DuelingBanditRanker>(state, of(RankerKind::kMgd));
}

void mgd_probabilistic(benchmark::State& state) {
  play_rounds<DuelingBanditRanker>(state, of(RankerKind::kMgd, Interleaving::kProbabilistic));
}

/// Documents per query and features of MQ2007 and of MSLR-WEB10K.
void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"docs", "features"})->Args({20, 46})->Args({120, 136})->Unit(benchmark::kMicrosecond);
}

BENCHMARK(pdgd)->Apply(shapes);
BENCHMARK(ranknet)->Apply(shapes);
BENCHMARK(dbgd_team_draft)->Apply(shapes);
BENCHMARK(dbgd_probabilistic)->Apply(shapes);
BENCHMARK(mgd_team_draft)->Apply(shapes);
BENCHMARK(mgd_probabilistic)->Apply(shapes);

}  // namespace
}  // namespace olrank

BENCHMARK_MAIN();
