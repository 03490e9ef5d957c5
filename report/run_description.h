#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace olrank {

struct RankerDescription {
  std::string name;
  std::string summary;   // "olranknet, width 100, full covariance"
  std::string settings;  // all of them as text; equal texts mean equal rankers
  bool skyline = false;  // learns from the true grades, which no other ranker sees
};

struct RunDescription {
  std::string data;                                        // the source
  std::map<std::int64_t, std::string> fingerprints;        // by fold, of all its parts
  std::vector<std::string> parts;                          // one sentence per fold
  std::vector<std::pair<std::string, std::string>> facts;  // for the page's setup section, in order
  std::vector<std::string> deviations;                     // from the protocol
  std::vector<std::pair<std::string, std::string>>
      settings;  // of data, protocol and clicks: "protocol.rounds"
  std::vector<RankerDescription> rankers;
  std::vector<std::string> users;
  std::vector<std::int64_t> folds;
  std::vector<std::int64_t> seeds;
  std::int64_t rounds = 0;
  std::int64_t trials = 0;  // of the whole experiment

  /// The value of a setting such as "protocol.name", or else the given word.
  std::string setting(const std::string& key, const std::string& otherwise) const;
};

/// The conventions printed with every result.
struct ResultConventions {
  std::string protocol;
  std::string empty_queries;  // offline rule for queries without a relevant document
  std::vector<std::int64_t> seeds;
  std::vector<std::string> deviations;  // from the protocol
};

/// Writes a text: "protocol paper, queries without a relevant document: zero, seeds 1, 2; ranker a: …".
std::string conventions_text(const ResultConventions& about);

ResultConventions conventions_of(const RunDescription& run);

/// Reads FOLDER/manifest.json. Throws InvalidArgument if there is none, IoError if it is invalid.
RunDescription read_run_description(const std::filesystem::path& folder);

/// The structure that every other one is compared with.
inline constexpr std::string_view kExactStructure = "full";

struct StudyCell {
  std::string ranker;     // its name in the experiment
  std::string structure;  // a covariance, inducing-N or ensemble-N
  std::int64_t width = 0;
  std::int64_t depth = 0;
  std::optional<double> noise_variance;  // of an ensemble
  std::optional<double> alpha;           // of a covariance
  std::optional<std::int64_t> budget;    // of an inducing covariance

  friend bool operator==(const StudyCell&, const StudyCell&) = default;
};

/// The rate of wrong certain orders at one α.
struct CalibrationPoint {
  double alpha = 0.0;
  double false_certain = 0.0;  // NaN if no order was certain
  double certain_orders = 0.0;

  friend bool operator==(const CalibrationPoint&, const CalibrationPoint&) = default;
};

/// The search for the α at which a ranker's false certainty equals that of the exact structure.
struct Calibration {
  std::string ranker;
  double target = 0.0;  // false certainty of the exact structure at its own α
  double alpha = 0.0;   // the result
  bool bracketed = false;
  std::vector<CalibrationPoint> points;  // α ascends

  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// A plan is what a study adds to its experiment.
struct StudyPlan {
  bool matched_alpha = false;
  std::int64_t calibration_rounds = 0;
  std::vector<StudyCell> cells;
  std::vector<Calibration> calibrations;

  /// The cell of the exact structure with the width and depth of `cell`; null if it is not studied.
  const StudyCell* exact_of(const StudyCell& cell) const;
};

/// Finds the α whose false certainty is `target`, by linear interpolation over log α in the closest
/// decreasing curve (weighted least squares). If the curve does not reach the target, takes the nearer end
/// and leaves `bracketed` false. Ignores points without certain orders.
void match_alpha(Calibration& calibration);

/// The plan in FOLDER/study.json; none without that file. Throws IoError if the file is invalid.
std::optional<StudyPlan> read_study_plan(const std::filesystem::path& folder);

}  // namespace olrank
