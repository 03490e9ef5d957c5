#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/command.h"
#include "bench/measurement.h"
#include "core/runtime/log.h"
#include "core/text/text_table.h"
#include "jobs/recommending/recommender_file.h"
#include "recommend/recommender.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

// mter is to reach these rates on two cores.
constexpr double kTargetEntries = 1.5e6;
constexpr double kTargetPairs = 3e6;

/// Drawn entries and pairs of a pass, and its cost.
struct TimedPass {
  double entries = 0.0;
  double pairs = 0.0;
  double seconds = 0.0;
  double processor_seconds = 0.0;
};

double median_rate(const std::vector<TimedPass>& passes, double TimedPass::*count,
                   double TimedPass::*seconds) {
  std::vector<double> rates;
  rates.reserve(passes.size());
  for (const TimedPass& pass : passes) rates.push_back(pass.*count / pass.*seconds);
  return spread_of(std::move(rates)).median;
}

class BenchRecommendCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("--kind", kind_, "mter, mter-s, mter-sa or bprmf [default: mter]")
        ->check(CLI::IsMember({"mter", "mter-s", "mter-sa", "bprmf"}));
    app.add_option("--users", users_, "users [default: 10719]")->check(CLI::PositiveNumber);
    app.add_option("--items", items_, "items [default: 10410]")->check(CLI::PositiveNumber);
    app.add_option("--reviews", reviews_, "reviews [default: 285346]")->check(CLI::PositiveNumber);
    app.add_option("--passes", passes_, "timed passes, after one pass that is not timed [default: 3]")
        ->check(CLI::PositiveNumber);
    app.add_option("--threads", threads_, "CPU threads [default: 2]")->check(CLI::Range(1, 4096));
  }

  int run(const OutputFlags& output) override {
    ExecutionContext context(threads_);
    RecommendSettings settings = default_settings(*value_named<RecommenderKind>(kind_));
    settings.data = fmt::format("synth:factors?users={}&items={}&reviews={}", users_, items_, reviews_);
    settings.passes = passes_ + 1;
    const std::unique_ptr<const ReviewParts> parts = load_review_parts(settings, context);
    const auto training = recommender_kind(settings.kind).start(settings, parts->training);
    training->advance(context);  // not timed: pages of memory come with the first touch
    std::vector<TimedPass> timed;
    while (!training->finished()) {
      const auto began = std::chrono::steady_clock::now();
      const double processor = processor_seconds();
      const TrainingPassReport report = training->advance(context);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      timed.push_back({static_cast<double>(report.entries), static_cast<double>(report.pairs), took.count(),
                       processor_seconds() - processor});
      log_info("pass {} of {}: {:.2f} s", timed.size(), passes_, took.count());
    }
    const ordered_json result = json(timed);
    output.print(result, text(result, output));
    return 0;
  }

 private:
  ordered_json json(const std::vector<TimedPass>& timed) const {
    ordered_json passes = ordered_json::array();
    for (const TimedPass& pass : timed) {
      passes.push_back({{"entries", pass.entries},
                        {"pairs", pass.pairs},
                        {"seconds", pass.seconds},
                        {"processor_seconds", pass.processor_seconds}});
    }
    const auto rates = [&](double TimedPass::*seconds) {
      return ordered_json{{"entries", median_rate(timed, &TimedPass::entries, seconds)},
                          {"pairs", median_rate(timed, &TimedPass::pairs, seconds)}};
    };
    ordered_json result = {{"kind", kind_},       {"users", users_},     {"items", items_},
                           {"reviews", reviews_}, {"threads", threads_}, {"passes", passes}};
    result["per_second"] = rates(&TimedPass::seconds);
    result["per_processor_second"] = rates(&TimedPass::processor_seconds);
    if (kind_ == "mter")
      result["target_on_two_cores"] = {{"entries", kTargetEntries}, {"pairs", kTargetPairs}};
    return result;
  }

  static std::string text(const ordered_json& result, const OutputFlags& output) {
    TextTable table({{"drawn", true}, {"a second"}, {"a second of a processor"}, {"target on two cores"}});
    for (const char* const drawn : {"entries", "pairs"}) {
      const auto millions = [&](const char* rate) {
        return result.contains(rate)
                   ? fmt::format("{:.2f} million", result[rate][drawn].get<double>() / 1e6)
                   : std::string("–");
      };
      table.add({drawn, millions("per_second"), millions("per_processor_second"),
                 millions("target_on_two_cores")});
    }
    return fmt::format("{}: {} users, {} items, {} reviews, {} threads, median of {} passes\n",
                       result["kind"].get<std::string>(), result["users"].get<std::int64_t>(),
                       result["items"].get<std::int64_t>(), result["reviews"].get<std::int64_t>(),
                       result["threads"].get<int>(), result["passes"].size()) +
           table.fitted(output.columns()).text;
  }

  std::string kind_ = "mter";
  std::int64_t users_ = 10719;
  std::int64_t items_ = 10410;
  std::int64_t reviews_ = 285346;
  std::int64_t passes_ = 3;
  int threads_ = 2;
};

}  // namespace

const CommandEntry kBenchRecommendCommand{
    "bench recommend",
    "benchmark the training of a recommender on generated reviews: entries and pairs a second",
    make_command<BenchRecommendCommand>};

}  // namespace olrank
