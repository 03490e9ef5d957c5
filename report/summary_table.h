#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/trial_identity.h"

namespace olrank {

/// The last figures of one finished trial.
struct SummaryRow {
  TrialIdentity identity;
  std::int64_t rounds = 0;
  std::int64_t pairs = 0;
  std::int64_t cutoff = 10;
  std::int64_t parameters = 0;
  double offline_ndcg = 0.0;
  double online_ndcg = 0.0;
  double discounted_ndcg = 0.0;
  std::optional<std::int64_t> regret;
  std::optional<double> certain_share;
  std::optional<double> unfairness;     // UF at the end, where groups are measured
  std::optional<double> fair_share;     // of the rounds
  std::optional<double> false_certain;  // of the certain orders whose documents have different grades
  std::optional<double> blocks;
  double offline_area = 0.0;
  double online_area = 0.0;
  double seconds = 0.0;  // not in the table, because it differs between runs
  double rounds_per_second = 0.0;
  std::string result_fingerprint;
  // These are of random orders of the same queries; NaN in the summaries of earlier versions.
  double random_offline_ndcg = std::numeric_limits<double>::quiet_NaN();
  double random_online_ndcg = std::numeric_limits<double>::quiet_NaN();
  double random_discounted_ndcg = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, double>> metrics;  // offline, those of protocol.metrics
};

/// The conventions printed with every result.
struct ResultConventions {
  std::string protocol;
  std::string empty_queries;  // offline rule for queries without a relevant document
  std::vector<std::int64_t> seeds;
  std::vector<std::string> deviations;  // from the protocol
};

/// As a sentence: "protocol paper, queries without a relevant document: zero, seeds 1, 2; ranker a: …".
std::string conventions_text(const ResultConventions& about);

/// All finished trials in an experiment's folder, in the order of names, folds and seeds: merged shards
/// look like one run. Throws IoError for a damaged summary, or adds a sentence to `damage` and leaves it
/// out.
std::vector<SummaryRow> read_summaries(const std::filesystem::path& experiment,
                                       std::vector<std::string>* damage = nullptr);

/// summary.csv: one line per trial; equal results give equal bytes.
std::string summary_csv(const std::vector<SummaryRow>& rows);

/// A table of means for each ranker and user, each ± half the width of its 95 % t interval, over fold means
/// with several folds, else over seeds. At most `columns` wide unless 0: names are shortened, then columns
/// are dropped: rounds/s, trials, wrong, certain, online.
std::string summary_text(const std::vector<SummaryRow>& rows, const ResultConventions& about,
                         std::int64_t columns = 0);
/// Writes the means as JSON, with the conventions in every row.
std::string summary_means_json(const std::vector<SummaryRow>& rows, const ResultConventions& about);

}  // namespace olrank
