#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "olrank/data.h"

/// Scoring functions: model files, and models fitted to grades. Needs the C++20 standard library alone.
namespace olrank {

class ModelScorer;

/// A function of raw documents. Copies share it; any number of threads may use one.
class Model {
 public:
  /// A model file, a snapshot, or the folder of a finished trial or training that has a model. One with
  /// code, that of a TorchScript module, is refused unless `trust_code` says that its origin is trusted:
  /// code can read and write files.
  static Model load(const std::filesystem::path& file, bool trust_code = false);
  static Model from_bytes(std::string bytes, bool trust_code = false);

  std::int64_t features() const;
  /// Their names, f1, f2, … where the file has no others; empty where it has none.
  const std::vector<std::string>& feature_names() const;
  /// Whether a document's inputs depend on the other documents of its query, as those of query-minmax and
  /// of additive models do.
  bool normalises_by_query() const;
  /// Scores of documents [docs × features]. Query q has the documents offsets[q] to offsets[q + 1]; without
  /// offsets all are one query. A snapshot knows documents by a name of each query and an ID of each row,
  /// which other models ignore; either may be empty.
  std::vector<double> score(std::span<const float> docs, std::span<const std::int64_t> offsets = {},
                            std::span<const std::string> queries = {},
                            std::span<const std::string> ids = {}) const;
  /// The scores of a data set's documents, dense or sparse.
  std::vector<double> score(const RankingData& data) const;
  /// Writes the scores into memory of yours, one for each document.
  void score_into(std::span<const float> docs, std::span<const std::int64_t> offsets,
                  std::span<double> scores, std::span<const std::string> queries = {},
                  std::span<const std::string> ids = {}) const;
  /// The bytes of its model file.
  const std::string& bytes() const;
  void save(const std::filesystem::path& file) const;

 private:
  Model(std::string bytes, const std::string& origin, bool trust_code);

  std::shared_ptr<const std::string> bytes_;
  std::shared_ptr<const ModelScorer> scorer_;
};

struct FitOptions {
  /// Settings of the table [train] by their keys, such as {"loss", "listnet"}; docs/CONFIGURATION.md lists
  /// them.
  std::map<std::string, std::string> settings = {};
  std::string normalise = "query-minmax";
  std::uint64_t seed = 1;
  int threads = 0;             // 0: all cores; changes no bit
  std::string device = "cpu";  // or cuda, or one of several GPUs, such as cuda:1, with bits of its own
  std::vector<std::string> feature_names = {};  // for the model's file; empty: f1, f2, …
  /// A file with a log of shown lists: the model learns from its clicks instead of grades.
  std::string log = {};
  std::string estimator = "ips";    // or naive, dr, two-tower, regression-em
  std::string click_model = "pbm";  // of ips and dr: or cascade, dcm, dbn, ubm, two-tower, trust
  double clip = 10.0;               // largest weight of a click or of a shown document
  /// Asked after every epoch: true ends the training, and fit_model() throws Error.
  std::function<bool()> stopped = {};
};

/// Fits a model to grades, or to a log, as `olrank train` does with the same settings, data and seed. A
/// validation part is for `patience`. The documents of a log are those of `train`, unless it has their
/// inputs: then there is no `train`.
Model fit_model(const std::optional<RankingData>& train,
                const std::optional<RankingData>& validation = std::nullopt,
                const FitOptions& options = {});

}  // namespace olrank
