// Rounds as in a run: mean milliseconds per round over the first 1,000, 5,000 and 20,000 rounds, also as a
// multiple of a 1000³ float GEMM in the same process, and over the last 200 rounds before each of these
// points.
//   rounds [SOURCE…] [--rounds N] [--neural] [--only CASE]… [--protocol reference|paper] [--eval-every E]
//          [--threads T] [--device cuda[:N]]
// SOURCE is a data folder (fold 1) or synth:NAME. Without --neural it measures the linear rankers,
// evaluated every 10 rounds; with it olRankNet at m = 100 with every covariance and ensembles of 1, 2 and
// 10, evaluated every 100. CASE is the name at the start of a line, such as full or N=10.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/product_unit.h"
#include "core/data/data_loader.h"
#include "core/data/normaliser.h"
#include "core/error.h"
#include "core/runtime/device.h"
#include "models/ranker_factory.h"
#include "sim/ranker_data.h"
#include "sim/trial.h"
#include "sim/uniform_queries.h"
#include "sim/users.h"

namespace olrank {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TrialData load(const std::string& source, ExecutionContext& context) {
  DataSettings settings;
  settings.source = source;
  const DataParts parts = load_parts(settings, 1, context);
  const FittedNormaliser normaliser = fit_normaliser(settings.normalise, parts.train, false, context);
  const int max_grade = std::max(parts.train.max_grade(), parts.test.max_grade());
  return {normaliser.apply(parts.train, context), normaliser.apply(parts.test, context), max_grade};
}

struct Case {
  std::string name;
  RankerSettings settings;
};

std::vector<Case> linear_cases(ProtocolName protocol) {
  std::vector<Case> cases;
  for (const RankerKind kind : {RankerKind::kPairRank, RankerKind::kPdgd, RankerKind::kP2LinRank,
                                RankerKind::kRankNet, RankerKind::kDbgd, RankerKind::kMgd}) {
    cases.push_back({std::string(name_of(kind)), RankerSettings::defaults(kind, protocol)});
  }
  return cases;
}

std::vector<Case> neural_cases(ProtocolName protocol) {
  std::vector<Case> cases;
  for (const Covariance covariance : {Covariance::kFull, Covariance::kDiagonal, Covariance::kNone}) {
    RankerSettings settings = RankerSettings::defaults(RankerKind::kOlRankNet, protocol);
    settings.posterior.covariance = covariance;
    cases.push_back({std::string(name_of(covariance)), settings});
  }
  for (const std::int64_t members : {1, 2, 10}) {
    RankerSettings settings = RankerSettings::defaults(RankerKind::kP2NeurRank, protocol);
    settings.posterior.members = members;
    cases.push_back({fmt::format("N={}", members), settings});
  }
  return cases;
}

void measure(const TrialData& data, const Case& measured, std::int64_t rounds, std::int64_t eval_every,
             double gemm, const std::optional<int>& gpu, ExecutionContext& context) {
  const auto keys = TrialKeys::of(1, 1, "perfect");
  const ClickSettings clicks;
  const auto user = make_user("perfect", clicks, {}, data.max_grade);
  const UniformQueries queries(keys.key(Purpose::kQuery), data.train.queries());
  const RankerData known = ranker_data(data);
  const RankerDevice place{gpu.value_or(0), known.train, known.most_docs, known.eval_docs, 0};
  const auto ranker =
      make_ranker(measured.settings, data.train.features(), keys, 10,
                  {.device = gpu && !why_not_on_device(measured.settings) ? &place : nullptr});
  Trial trial({.rounds = rounds, .cutoff = 10, .eval_every = eval_every}, data,
              {.queries = &queries, .clicks = user.get()}, keys, *ranker, context);
  fmt::print("  {:<10}", measured.name);
  const auto play_to = [&](std::int64_t round) {
    const std::int64_t first = trial.rounds_played();
    const auto start = Clock::now();
    while (trial.rounds_played() < round) {
      if (trial.evaluation_due()) trial.evaluate();
      trial.play_round();
    }
    return seconds_since(start) / static_cast<double>(std::max(round - first, std::int64_t{1}));
  };
  double seconds = 0.0;
  for (const std::int64_t until : {1000, 5000, 20000}) {
    if (until > rounds) break;
    const std::int64_t first = trial.rounds_played();
    seconds += static_cast<double>(until - 200 - first) * play_to(until - 200);
    const double last = play_to(until);
    seconds += 200.0 * last;
    const double mean = seconds / static_cast<double>(until);
    fmt::print("  first {}: {:.4f} ms ({:.4f} GEMM), last 200: {:.4f} ms", until, mean * 1e3, mean / gemm,
               last * 1e3);
    std::fflush(stdout);
  }
  fmt::print("\n    ");
  for (const auto& stage : trial.clock().stages()) {
    fmt::print(" {} {:.1f} us", stage.name,
               stage.seconds / static_cast<double>(trial.rounds_played()) * 1e6);
  }
  fmt::print("\n");
}

std::optional<int> one_gpu(const std::string& asked) {
  const DeviceRequest request = parse_device(asked);
  if (!request.on_gpus()) return std::nullopt;
  if (request.every_gpu || request.gpus.size() > 1 || request.gpus[0].first != request.gpus[0].last)
    throw InvalidArgument(fmt::format("--device {}: This program uses one GPU.", asked));
  return request.gpus[0].first;
}

int run(const std::vector<std::string>& arguments) {
  std::int64_t rounds = 1000;
  std::int64_t eval_every = 0;
  bool neural = false;
  ProtocolName protocol = ProtocolName::kReference;
  bool protocol_given = false;
  std::vector<std::string> sources;
  std::vector<std::string> only;
  int threads = 1;
  std::optional<int> gpu;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--rounds" && i + 1 < arguments.size()) {
      rounds = std::max(std::atoll(arguments[++i].c_str()), 1000LL);
    } else if (arguments[i] == "--eval-every" && i + 1 < arguments.size()) {
      eval_every = std::max(std::atoll(arguments[++i].c_str()), 1LL);
    } else if (arguments[i] == "--protocol" && i + 1 < arguments.size()) {
      protocol = value_named<ProtocolName>(arguments[++i]).value_or(protocol);
      protocol_given = true;
    } else if (arguments[i] == "--only" && i + 1 < arguments.size()) {
      only.push_back(arguments[++i]);
    } else if (arguments[i] == "--threads" && i + 1 < arguments.size()) {
      threads = std::max(std::atoi(arguments[++i].c_str()), 1);
    } else if (arguments[i] == "--device" && i + 1 < arguments.size()) {
      gpu = one_gpu(arguments[++i]);
    } else if (arguments[i] == "--neural") {
      neural = true;
    } else {
      sources.push_back(arguments[i]);
    }
  }
  if (neural && !protocol_given) protocol = ProtocolName::kPaper;
  if (eval_every == 0) eval_every = neural ? 100 : 10;
  if (sources.empty()) sources = {"synth:mslr-like?queries=400", "synth:small"};
  ExecutionContext context(threads);
  ProductUnit unit;
  unit.measure(9);
  const double gemm = unit.seconds();
  fmt::print("1000x1000x1000 float GEMM: {:.2f} ms\n", gemm * 1e3);
  for (const std::string& source : sources) {
    const TrialData data = load(source, context);
    fmt::print("{}: {} queries, {:.0f} documents each, {} features; {} test documents\n", source,
               data.train.queries(),
               static_cast<double>(data.train.docs()) / static_cast<double>(data.train.queries()),
               data.train.features(), data.eval_set.docs());
    for (const Case& next : neural ? neural_cases(protocol) : linear_cases(protocol)) {
      if (!only.empty() && std::find(only.begin(), only.end(), next.name) == only.end()) continue;
      measure(data, next, rounds, eval_every, gemm, gpu, context);
    }
  }
  return 0;
}

}  // namespace
}  // namespace olrank

int main(int argc, char** argv) {
  try {
    return olrank::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "rounds: {}\n", error.what());
    return 1;
  }
}
