#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fair/exposure.h"
#include "core/io/atomic_file.h"
#include "core/io/fingerprint.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/runtime/progress.h"
#include "core/statistics/intervals.h"

namespace olrank {

/// Compares the widths that a ranker used with the exact ones.
struct WidthRatio {
  double median = 0.0;
  double p10 = 0.0;
  double p90 = 0.0;
};

/// Quantiles of own/exact widths, by linear interpolation; none without a ratio.
inline std::optional<WidthRatio> width_ratio_of(std::vector<double> ratios) {
  if (ratios.empty()) return std::nullopt;
  std::sort(ratios.begin(), ratios.end());
  return WidthRatio{sorted_quantile(ratios, 0.5), sorted_quantile(ratios, 0.1),
                    sorted_quantile(ratios, 0.9)};
}

/// A ranker that shows every query in a random order has these on average: exact, from the grades of the
/// same queries.
struct RandomPoint {
  double offline_ndcg = 0.0;
  double online_ndcg = 0.0;
  double discounted_ndcg = 0.0;
  std::optional<double> regret;
};

/// An offline metric beyond NDCG@k.
struct CurveMetric {
  std::string name;
  double value = 0.0;
  double random = 0.0;  // what random orders have; NaN where that is unknown
};

/// The balance of exposure between groups.
struct FairnessPoint {
  double unfairness = 0.0;           // UF_t, of the two groups that are farthest apart
  double fair_share = 1.0;           // of the rounds so far, those with |UF_t| ≤ ε
  std::optional<double> violations;  // certain orders that a list violates, mean since the last evaluation
  std::int64_t unrealisable = 0;     // rounds so far without a list within ε
  std::vector<double> exposure;      // of A, B, …
};

/// Where the classes of stated probabilities begin; the last one ends at 1.
constexpr std::array<double, 8> kStatedFrom = {0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99};
using StatedTallies = std::array<Tally, kStatedFrom.size()>;
bool is_stated(const StatedTallies& tallies);

/// The places in ListCertainty::kBlockRanks of ranks 1, 5 and 10, the ones that fingerprints cover.
constexpr std::array<std::size_t, 3> kFingerprintedBlocks = {0, 4, 9};

/// One evaluation of a trial: a line of curve.jsonl.
struct CurvePoint {
  std::int64_t round = 0;    // rounds played
  std::int64_t pairs = 0;    // learnt from so far
  std::int64_t cutoff = 10;  // k of the figures below
  double offline_ndcg = 0.0;
  double online_ndcg = 0.0;            // mean of all shown lists so far
  double discounted_ndcg = 0.0;        // Σ γ^{t−1} NDCG@k
  std::optional<std::int64_t> regret;  // none with recorded lists, of which only the first ranks are known
  std::optional<std::int64_t> examined_regret;  // of the documents that the user examined
  RandomPoint random;
  std::vector<CurveMetric> metrics;  // offline, those of protocol.metrics
  // Means over the rounds since the previous evaluation; none for rankers without certain orders.
  std::optional<double> certain_share;
  std::optional<double> blocks;
  std::array<std::optional<double>, ListCertainty::kBlockRanks.size()> block_size;
  std::optional<double> cosine;           // to the offline model; none without one
  std::optional<WidthRatio> width_ratio;  // of the shown pairs since the previous evaluation
  // Since the previous evaluation; the denominator may be 0.
  Tally false_certain;     // certain orders of shown documents contradicted by their grades
  Tally decisions_differ;  // decisions on shown pairs that exact widths would reverse
  StatedTallies stated{};  // shown orders contradicted by their grades, by the probability stated of them
  std::optional<double> drift;
  std::optional<FairnessPoint> fairness;  // where documents have groups
  std::vector<RankerFigure> figures;      // of the ranker's health, beyond drift
};

/// The line, with '\n'. Without a `clock` it is what fingerprints cover: seconds are left out, which differ
/// between runs, the figures of random lists, which do not depend on the ranker, the regret of examined
/// documents, most sizes of blocks and the added metrics, so that a trial has one fingerprint whatever is
/// measured.
std::string curve_line(const CurvePoint& point, const StageClock* clock);

/// A number as JSON: the shortest text that reads back exactly; null for NaN and infinities.
std::string json_number(double value);

/// Where a curve ends, and its running totals: what a checkpoint records of it.
struct CurveState {
  std::uint64_t bytes = 0;
  Fingerprint digest;         // chained over the lines without seconds
  double offline_area = 0.0;  // ∫ by rounds, trapezoids
  double online_area = 0.0;
  double last_round = 0.0;
  double last_offline = 0.0;
  double last_online = 0.0;
  std::int64_t points = 0;

  /// Adds an evaluation, which takes `line_bytes` in the file.
  void add(const CurvePoint& point, std::uint64_t line_bytes);
  /// The mean height of each curve; at round 0 its value.
  double mean_offline() const { return last_round > 0.0 ? offline_area / last_round : last_offline; }
  double mean_online() const { return last_round > 0.0 ? online_area / last_round : last_online; }

  void fields(StateFields& state);
};

/// The fingerprint of a text and of what came before it.
Fingerprint chained(const Fingerprint& before, std::string_view text);

struct PlayedRound;

/// Writes everything that a trial does, one JSON object per round, so it can be recomputed elsewhere.
/// Numbers read back exactly. The file appears when it is closed.
class Trace {
 public:
  /// `detail` adds parameters, squared widths and certain orders. `config_json` becomes the first line.
  Trace(const std::filesystem::path& path, bool detail, std::string_view config_json);

  bool detail() const { return detail_; }
  void write(const PlayedRound& round, std::string_view qid, const RoundDetail& rested_on);
  void close();

 private:
  void flush();

  AtomicFile file_;
  bool detail_;
  std::string buffer_;
};

}  // namespace olrank
